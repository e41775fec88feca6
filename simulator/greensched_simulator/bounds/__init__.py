"""The least that a world can cost, whatever the policy, by linear programming.

Imports `runs` and `world`. Begin with `bound.py`.
"""
