"""The rules of the literature and our own, and the catalogue that names them.

A folder for each kind; a rule imports `costs` and `encoding` only. Begin with `catalogue.py`.
"""
