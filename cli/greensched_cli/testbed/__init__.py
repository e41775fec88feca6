"""The verbs of the testbed: `demo`, `cluster`, `replay`, `benchmark`.

Imports `reading`, `explain`, `extras.py`, `interrupts.py`, `output.py`, `terminal.py` and
`whole_summaries.py`. Begin with `demo.py`.
"""
