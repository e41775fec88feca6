"""`greensched report`: what holding saved, from the ledger.

Imports `explain`, `reading`, `simulation` (for `report FOLDER`), `output.py` and `terminal.py`.
Begin with `report.py`.
"""
