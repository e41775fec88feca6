"""The demo: bills of one workload by the default scheduler, placed, and also held.

Imports the control plane and its nodes, `replay.py` and `operator_processes.py`. Begin with
`run.py`.
"""
