"""Running jobs: starts, speeds, suspensions, resumptions, failures and ends.

Imports `run.py`, `state`, `arrays` and `compiling`. Begin with `running.py`.
"""
