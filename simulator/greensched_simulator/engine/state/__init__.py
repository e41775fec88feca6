"""The state of the engine at one time, and what a decision sees of it.

Imports `arrays`. Begin with `cluster.py` and `choices.py`.
"""
