"""Files of others: traces of jobs and requests, and series of grids, read into rows.

Imports nothing else of this package. Begin with `traces.py`.
"""
