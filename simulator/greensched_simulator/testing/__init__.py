"""Worlds for tests, written in a few lines or drawn at random.

Imports `runs`, `world`, `engine` and `arrays`. Begin with `small_worlds.py`.
"""
