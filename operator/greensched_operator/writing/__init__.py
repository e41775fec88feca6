"""Writes conditions, annotations and starts to the API server, in order and with retries.

Imports `planning`, `holding`, `objects` and `runtime`. Begin with `writing.py`.
"""
