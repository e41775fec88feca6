"""Runs side by side: comparisons, their tables, and the folder of files that a run leaves.

Imports `bounds`, `runs`, `world`, `scenario`, `arrays` and `policy.py`. Begin with `comparison.py`.
"""
