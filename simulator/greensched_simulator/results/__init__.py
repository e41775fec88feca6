"""Runs side by side: comparisons, their tables, and the folder of files that a run leaves.

Imports `bounds` and `runs`. Begin with `comparison.py`.
"""
