"""The leader: what arrives is judged, planned, written and recorded.

Imports all other folders but `install_check`, `providers` and `release`. Begin with
`controller.py`; `controller_process.py` wires it.
"""
