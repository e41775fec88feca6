"""A policy on a world: the schedule that follows, what it cost and how it served.

Imports `engine` and `world`. Begin with `simulation.py`.
"""
