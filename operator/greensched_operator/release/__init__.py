"""Starts held work when the controller is dead, and all held work before an uninstall.

Imports `kueue`, `objects`, `runtime` and `webhook` (its probes). Begin with `releaser.py`.
"""
