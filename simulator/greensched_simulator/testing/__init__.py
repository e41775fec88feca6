"""Worlds for tests, written in a few lines or drawn at random.

Imports `runs`, `world`, `engine` and `arrays`, and in `operator_beside.py` the operator. Begin with
`small_worlds.py`.
"""
