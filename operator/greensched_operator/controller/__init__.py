"""The leader: judges, plans, writes and records work.

Imports all other folders except `install_check`, `providers` and `release`. Begin with
`controller.py`; `controller_process.py` wires it.
"""
