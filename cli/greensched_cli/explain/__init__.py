"""`greensched explain`, `nodes`: why a pod went where it went.

Imports `reading`. Begin with `decisions.py`.
"""
