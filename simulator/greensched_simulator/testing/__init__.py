"""Worlds for tests, told in a line or drawn at random.

Imports `runs` and `world`. Begin with `small_worlds.py`.
"""
