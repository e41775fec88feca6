"""What a policy sees and what its answer is worth: arrays of nodes, start slots, queues and caps.

Imports `costs`. Begin with `observation.py`, which explains each column.
"""
