"""The compiled library of what decides, as the components see it: without numba or a compiler.

`kernel` has the functions and makes the library. Imports `rules`, `encoding` and `costs`.
Begin with `functions.py`: what the library offers.
"""
