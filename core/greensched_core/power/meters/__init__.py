"""Who measures watts and joules: a file for each exporter, and the catalogue that orders them.

Imports Prometheus' answers and the courses of pods from `power`. Begin with `meter.py`.
"""
