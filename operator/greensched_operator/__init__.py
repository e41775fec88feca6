"""The operator: holds work for a cleaner, cheaper hour, and starts it in time.

`__main__.py` starts one of five processes: those of `webhook` and `controller`, the two of
`release`, and that of `install_check`. From the bottom up: `objects`, `runtime`, `holding`,
`planning`, `ledger`, `writing`, `kueue`, `signals` with its `providers`, and the processes. Begin
with `controller/controller.py`.
"""
