"""Decides whether an object is held, until when at the latest, and by which policy: pure.

Imports `objects`. Begin with `holding.py` and `judging.py`.
"""
