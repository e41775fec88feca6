"""Which held work starts when, and which running work is suspended: pure.

Imports `holding` and `objects`. Begin with `start_planning.py`.
"""
