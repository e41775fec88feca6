"""Keeps GridSignal objects current with the answers of their providers.

Imports `providers` and `runtime`. Begin with `grid_signal_controller.py`.
"""
