"""Stress benchmark: runs the same fixed work under several strategies on any cluster.

Imports `replay.py`, `creating.py` and `billed_nodes.py`, but no control plane: it runs on the
cluster of a kubeconfig. Begin with `run.py`.
"""
