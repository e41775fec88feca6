"""The checks that `helm test` runs after an installation, and their checklist.

Imports `controller`, `objects` and `runtime`. Begin with `check.py`.
"""
