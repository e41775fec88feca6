"""Nodes that a Cluster Autoscaler starts and removes, by its rules and defaults.

Imports `queue`, `execution`, `run.py`, `state` and `arrays`. Begin with `scans.py`.
"""
