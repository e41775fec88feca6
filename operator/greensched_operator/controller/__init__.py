"""The leader: judges, plans, writes and records work.

Imports `writing`, `ledger`, `kueue`, `signals`, `planning`, `holding`, `webhook`, `objects` and
`runtime`. Begin with
`controller.py`; `controller_process.py` wires it.
"""
