"""`greensched status`: what is held, since when, until when and why.

Imports `explain`, `reading`, `output.py` and `terminal.py`. Begin with `status.py`.
"""
