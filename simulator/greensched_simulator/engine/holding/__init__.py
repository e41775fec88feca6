"""Holds jobs by a GreenPolicy as the operator does: planned, planned again, released.

Imports `queue`, `execution`, `state`, `run.py`, `engine.py` and `arrays`. Begin with `held_run.py`.
"""
