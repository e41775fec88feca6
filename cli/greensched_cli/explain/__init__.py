"""`greensched explain`, `nodes`: why a pod went where it went.

Imports `reading` and `output.py`. Begin with `decisions.py`.
"""
