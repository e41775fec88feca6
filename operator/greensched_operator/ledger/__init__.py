"""The ledger: each decision as a record, in SQLite or PostgreSQL; without it decisions go on.

Imports `planning`, `objects` and `runtime`. Begin with `store.py`; `ledger_service.py` wires it.
"""
