"""From a scenario and a seed to arrays, with the checks of what it says.

Imports `scenario`, `formats` and `arrays`. Begin with `world.py`; `scenario_loading.py` reads
the file.
"""
