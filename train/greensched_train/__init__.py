"""Training of policies: their data and worlds, the nets, and how good they are.

Imports `greensched_policies` and `greensched_simulator`. Begin with `training.py`.
"""
