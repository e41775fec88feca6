"""A policy on a world: the schedule that follows, what it cost and how it served.

Imports `engine`, `world`, `arrays` and `policy.py`. Begin with `simulation.py`.
"""
