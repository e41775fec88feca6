"""Jobs that wait for a node: queues, reservations, gangs, and the search for a node.

Imports `execution`, `run.py`, `state` and `arrays`. Begin with `queueing.py`.
"""
