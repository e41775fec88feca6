"""From a scenario and a seed to arrays, with the checks of what it says.

Imports `scenario`, `formats`, `arrays` and `engine` (its outages). Begin with `world.py`;
`scenario_loading.py` reads the file.
"""
