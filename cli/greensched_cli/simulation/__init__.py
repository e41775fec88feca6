"""The verbs of the simulator: `simulate`, `compare`, `bound`, `scenario`, `reproduce`.

Imports `interrupts.py` and `terminal.py`. Begin with `simulate.py`.
"""
