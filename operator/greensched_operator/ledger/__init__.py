"""The ledger: a record of each decision, in SQLite or PostgreSQL. Decisions do not depend on it.

Imports `planning`, `objects` and `runtime`. Begin with `store.py`; `ledger_service.py` wires it.
"""
