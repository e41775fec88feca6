"""What `helm test` looks at after an installation, as a checklist.

Imports `controller`, `objects` and `runtime`. Begin with `check.py`.
"""
