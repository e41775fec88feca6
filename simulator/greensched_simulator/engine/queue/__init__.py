"""Work that waits for a node: queues, reservations, gangs, and the search for a node.

Imports `execution` and `state`. Begin with `queueing.py`.
"""
