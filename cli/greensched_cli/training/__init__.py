"""The verbs of learned policies: `train` and `evaluate`.

Imports `extras.py`, `interrupts.py` and `terminal.py`. Begin with `train.py`.
"""
