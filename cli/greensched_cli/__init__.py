"""The greensched command: thin verbs over the components.

Each group of verbs has a folder: `explain`, `status`, `release`, `ledger`, `simulation` and
`testbed`; `policy.py` and `report.py` hold the others. `reading` reads a cluster for them. A verb
imports simulator and testbed only when it runs, so that the verbs for a cluster work without them.
Begin with `__main__.py`, which wires the verbs.
"""
