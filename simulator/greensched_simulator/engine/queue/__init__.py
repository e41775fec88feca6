"""Jobs that wait for a node: queues, reservations, gangs, and the search for a node.

Imports `execution`, `run.py`, `state`, `arrays` and `compiling`. Begin with `queueing.py`.
"""
