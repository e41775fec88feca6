"""The verbs of the testbed: `demo`, `cluster`, `replay`, `benchmark`.

Imports `reading`, `explain`, `interrupts.py`, `output.py` and `terminal.py`. Begin with `demo.py`.
"""
