"""How numba compiles the engine and keeps its machine code; nothing here knows a cluster.

Imports nothing else of this package. Begin with `compiled.py`.
"""
