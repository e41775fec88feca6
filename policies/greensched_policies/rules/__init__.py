"""The rules of the literature and our own, and the catalogue that names them.

There is a file for each kind; a rule is in that file or in a separate one. No file of
rules imports another one. Imports `costs` and `encoding`. Begin with `catalogue.py`.
"""
