"""`greensched report`: what holding saved, by the ledger.

Imports `explain`, `reading`, `simulation` (for `report FOLDER`), `output.py` and `terminal.py`.
Begin with `report.py`.
"""
