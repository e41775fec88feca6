"""The arrays that the engine runs on: jobs, nodes, grids, data transfers and heaps of events.

Imports `compiling`. Begin with `jobs.py` and `nodes.py`.
"""
