"""The operator: holds work for a cleaner, cheaper hour, and starts it in time.

Four processes share it: `webhook`, `controller`, `release` (the releaser) and `install_check`.
From the bottom up: `objects`, `runtime`, `holding`, `planning`, `ledger`, `writing`, `kueue`,
`signals` with its `providers`, and the processes. Begin with `controller/controller.py`.
"""
