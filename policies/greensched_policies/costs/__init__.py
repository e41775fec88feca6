"""Costs of work in watts, seconds and money: running, capping, pausing, scaling and sleeping.

Imports nothing else of this package. Begin with `cost.py`.
"""
