"""Runs of a policy on a world: the schedule, its bill and its outcome.

Imports `engine`, `world`, `scenario`, `arrays` and `policy.py`. Begin with `simulation.py`.
"""
