"""`greensched report`: what holding saved, from the ledger.

Imports `explain`, `reading`, `extras.py`, `output.py` and `terminal.py`. Begin with `report.py`;
the verb is in `report.py` beside this folder.
"""
