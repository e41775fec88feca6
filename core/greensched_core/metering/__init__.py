"""Measured watts and joules of nodes and pods, read from meters by Prometheus.

Imports `errors.py`, `units.py`, `state.py`, `power` and `signals/readings.py`. Begin with
`meters/meter.py` for one exporter, `pod_energy.py` for the energy of pods, and `measured.py` for
the watts of nodes.
"""
