"""A discrete-event cluster in compiled arrays, with the scenarios, bounds and reports around it.

From the bottom up: `compiling`, `arrays`, `engine`, `formats`, `scenario`, `world`, `runs`,
`bounds`, `results`, `reports`; beside them `environments`, `phase_jobs`, `reproductions` and
`testing`. Begin with `runs/simulation.py`; `policy.py` names the policies that a run takes.
"""
