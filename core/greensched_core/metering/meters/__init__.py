"""Meters of watts and joules: a file for each exporter, and the catalogue that orders them.

Imports `prometheus.py`, `pod_runs.py`, `cpu_energy.py` and `energy_pieces.py`. Begin with
`meter.py`.
"""
