"""`greensched status`: what waits, since when, until when and why.

Imports `explain` and `reading`. Begin with `status.py`.
"""
