"""GridSignal objects kept current from the providers of carbon and price.

Imports `providers`. Begin with `grid_signal_controller.py`.
"""
