"""Which held work starts when, so that all of it fits: the planner of the operator.

Imports `rules`, `encoding` and `costs`. Begin with `planning.py`.
"""
