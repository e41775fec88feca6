"""The compiled event loop.

Its own folders, from the bottom up, are `state`, `execution`, `queue`, `autoscaling` and `holding`.
Imports `arrays`. Begin with `run.py`, which holds a whole run in one structure, and `engine.py`,
the loop. `plain_run.py` is the same loop for worlds without queues.
"""
