"""Training of policies: the data that they may learn from, and the worlds that are drawn from it.

Imports `greensched_simulator`. Begin with `data_split.py`.
"""
