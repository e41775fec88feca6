"""`greensched report`: what holding saved, by the ledger.

Imports `explain`, `reading` and `simulation` (for `report FOLDER`). Begin with `ledger_report.py`.
"""
