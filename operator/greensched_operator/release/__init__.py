"""What starts held work when all else is dead: the releaser; and, before an uninstall, all of it.

Imports `kueue`, `objects`, `runtime` and `webhook` (its probes). Begin with `releaser.py`.
"""
