"""Published results, run again by their own protocol: the paper's figure beside ours.

A file or two for each. Imports `runs`, `world`, `scenario`, `formats`, `phase_jobs`, `compiling`
and `policy.py`. Begin with `tables.py` and `gaia.py`.
"""
