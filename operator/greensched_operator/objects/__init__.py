"""Custom resources and workloads as the API server stores them, decoded once.

Imports nothing else of this package. Begin with `green_policy.py` and `workloads.py`.
"""
