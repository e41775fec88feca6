"""Meters of watts and joules: a file for each exporter, and the catalogue that orders them.

Imports Prometheus' answers and the runs and energy of pods from `power`. Begin with `meter.py`.
"""
