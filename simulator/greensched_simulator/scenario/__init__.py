"""What a scenario file may say: its fields, their units, bounds and defaults; read as YAML.

Imports `formats` and `policy.py`. Begin with `model.py`.
"""
