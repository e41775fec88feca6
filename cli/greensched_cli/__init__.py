"""The greensched command: thin verbs over the components.

A folder for each group of verbs: `explain`, `status`, `release`, `ledger`, `simulation` and
`testbed`; `reading` is what they know of a cluster. `__main__.py` wires the verbs.
"""
