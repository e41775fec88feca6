"""The rules of the literature and our own, and the catalogue that names them.

There is a file for each kind; a rule is in that file or in a separate one. It imports only `costs`
and `encoding`, and no other file of rules. Begin with `catalogue.py`.
"""
