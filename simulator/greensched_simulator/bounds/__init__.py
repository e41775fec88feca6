"""Lower bounds on what a world costs under any policy, by linear programming.

Imports `runs`, `world` and `arrays`. Begin with `bound.py`.
"""
