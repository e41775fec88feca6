"""The arrays that the engine runs on: jobs, nodes, grids, data transfers and heaps of events.

Imports nothing else of this package. Begin with `jobs.py` and `nodes.py`.
"""
