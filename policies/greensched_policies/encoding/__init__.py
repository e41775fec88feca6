"""Inputs and rewards of policies: arrays of nodes, start slots, queues and power caps.

Imports `costs`. Begin with `observation.py`, which explains each column.
"""
