"""What frees held work when all else is dead: the releaser, and the emergency release.

Imports `kueue`, `objects`, `runtime` and `webhook` (its probes). Begin with `releaser.py`.
"""
