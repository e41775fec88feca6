"""The model of scenario files (YAML): fields, units, bounds and defaults.

Imports `formats` and `policy.py`. Begin with `model.py`.
"""
