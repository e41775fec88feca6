"""What a scenario file may say: its fields, their units, bounds and defaults; no behaviour.

Imports `formats`. Begin with `model.py`.
"""
