"""Results of runs: comparisons, their tables, and the folder of files that a run writes.

Imports `bounds`, `runs`, `world`, `scenario`, `arrays` and `policy.py`. Begin with `comparison.py`.
"""
