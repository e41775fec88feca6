"""The verbs of the testbed: `demo`, `cluster`, `replay`, `benchmark`.

Begin with `demo.py`.
"""
