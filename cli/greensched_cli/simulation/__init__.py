"""The verbs of the simulator: `simulate`, `compare`, `bound`, `scenario`, `reproduce`.

Imports `interrupts.py`, `output.py` and `terminal.py`. Begin with `simulate.py`.
"""
