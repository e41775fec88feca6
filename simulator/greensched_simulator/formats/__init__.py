"""Readers of published files: traces of jobs and requests, and series of grids.

Imports nothing else of this package. Begin with `traces.py`.
"""
