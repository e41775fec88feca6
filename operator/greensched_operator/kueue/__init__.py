"""Holds work in Kueue queues by our AdmissionCheck.

Imports `writing`, `planning` and `objects`. Begin with `kueue_controller.py`.
"""
