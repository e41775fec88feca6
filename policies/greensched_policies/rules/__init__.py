"""The rules of the literature and our own, and the catalogue that names them.

A file for each kind. A rule imports `costs` and `encoding` only, and no other file of rules; it may
stand in its kind's file or in one of its own. Begin with `catalogue.py`.
"""
