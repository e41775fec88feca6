"""A real Kubernetes control plane on one machine, simulated and real nodes, and workload replay.

From the bottom up: programs and processes (`binaries.py`, `processes.py`), the control plane
(`controlplane.py`), what runs beside it (`operator_processes.py`, `kueue.py`, `metering.py`,
`real_nodes`), and what uses them (`demo`, `stress`, `end_to_end`, `kind`). pyproject.toml lists the
layers. Begin with `controlplane.py`.
"""
