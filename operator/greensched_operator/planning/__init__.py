"""Decides when held work starts and which running work is suspended; no input or output.

Imports `holding` and `objects`. Begin with `start_planning.py`.
"""
