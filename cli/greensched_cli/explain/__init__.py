"""`greensched explain`, `nodes`: why a pod was placed on its node.

Imports `reading` and `output.py`. Begin with `decisions.py`.
"""
