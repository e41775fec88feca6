"""The verbs of the simulator: `simulate`, `compare`, `bound`, `scenario`, `reproduce`.

Begin with `simulate.py`.
"""
