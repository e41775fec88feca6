"""Holds jobs by a GreenPolicy as the operator does: planned, planned again, released.

Imports `queue`, `execution`, `run` and `state`. Begin with `held_run.py`.
"""
