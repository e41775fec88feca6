"""What is written to the API server: conditions, annotations and starts, in order, tried again.

Imports `planning`, `holding`, `objects` and `runtime`. Begin with `writing.py`.
"""
