"""Custom resources: definitions of their fields, and which GreenPolicy a workload follows.

Imports durations, errors, labels and quoting only. Begin with `fields.py`.
"""
