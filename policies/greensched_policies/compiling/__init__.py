"""Compilation of the engine by numba, and the cache of its machine code; knows no cluster.

Imports `costs` and `library`. Begin with `compiled.py`.
"""
