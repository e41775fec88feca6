"""Builds a world, as arrays, from a scenario and a seed; checks the scenario.

Imports `scenario`, `formats` and `arrays`. Begin with `world.py`;
`scenario_loading.py` reads the file.
"""
