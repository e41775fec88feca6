"""The verbs of the simulator: `simulate`, `compare`, `bound`, `scenario`, `reproduce`.

Imports `extras.py`, `interrupts.py`, `output.py`, `terminal.py` and `whole_summaries.py`.
Begin with `simulate.py`.
"""
