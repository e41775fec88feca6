"""The ledger: each decision as a record, in SQLite or PostgreSQL; without it decisions go on.

Imports `planning`, `objects` and `runtime`. Begin with `store.py`; `keeping.py` wires it.
"""
