"""The least that a world can cost, whatever the policy, by linear programming.

Imports `runs`, `world` and `arrays`. Begin with `bound.py`.
"""
