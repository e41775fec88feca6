"""Answers kube-scheduler: which node costs the least energy, money and carbon.

Imports `greensched_policies` and `greensched_core`. Begin with `service.py`, which answers one call
from the snapshot of the cluster (`snapshot.py`).
"""
