"""The operator: holds work for a cleaner, cheaper hour, and starts it in time.

`__main__.py` starts one of five processes: one each in `webhook`, `controller` and `install_check`,
and two in `release`. The layers from the bottom up: `objects`, `runtime`, `holding`, `planning`,
`ledger`, `writing`, `kueue`, `signals` with its `providers`, and the processes. Begin with
`controller/controller.py`.
"""
