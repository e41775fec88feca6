"""The greensched command: thin verbs over the components.

Each group of verbs has a folder: `explain`, `status`, `release`, `ledger`, `simulation` and
`testbed`. `reading` reads a cluster for them. `__main__.py` wires the verbs.
"""
