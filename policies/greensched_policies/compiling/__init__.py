"""Compilation of the engine by numba, and the cache of its machine code; knows no cluster.

Imports nothing else of this package. Begin with `compiled.py`.
"""
