"""`greensched release`: start held work now.

Imports `status`, `explain` and `reading`. Begin with `release.py`.
"""
