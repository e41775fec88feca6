"""A discrete-event cluster simulator in compiled arrays, with its scenarios, bounds and reports.

From the bottom up: `arrays`, `engine`, `formats`, `scenario`, `world`, `runs`,
`bounds`, `results`, `reports`; apart from these `environments`, `phase_jobs`, `reproductions` and
`testing`. Begin with `runs/simulation.py`; `policy.py` parses the policies that a run takes.
"""
