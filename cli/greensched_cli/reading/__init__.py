"""Reads what a user may see of a cluster: held work, the operator and its extenders.

Imports nothing else of this package. Begin with `cluster_reading.py`.
"""
