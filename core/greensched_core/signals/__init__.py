"""Signals of the grid: carbon and price by zone with their age, and a fallback for each.

Imports `clock.py`, `errors.py`, `labels.py` and `units.py`. Begin with `grid.py`, which reads
GridSignals.
"""
