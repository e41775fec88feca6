"""The arrays that the engine runs on: jobs, nodes, grids, transfers, and heaps of what is next.

Imports `compiling`. Begin with `jobs.py` and `nodes.py`.
"""
