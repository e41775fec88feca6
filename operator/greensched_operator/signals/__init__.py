"""Keeps GridSignal objects current with the answers of their providers.

Imports `providers`. Begin with `grid_signal_controller.py`.
"""
