"""Running jobs: starts, speeds, suspensions, resumptions, failures and ends.

Imports `run.py`, `state` and `arrays`. Begin with `running.py`.
"""
