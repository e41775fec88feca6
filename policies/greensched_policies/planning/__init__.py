"""The operator's planner: chooses the starts of held work so that all of it fits.

Imports `library`, `rules`, `encoding` and `costs`. Begin with `planning.py`.
"""
