"""Held work in a queue of Kueue, by an AdmissionCheck of ours.

Imports `writing`, `planning` and `objects`. Begin with `kueue_controller.py`.
"""
