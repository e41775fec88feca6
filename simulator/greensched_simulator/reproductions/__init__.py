"""Published results, run again by their own protocol and compared with ours.

Each has one or two files. Imports `runs`, `world`, `scenario`, `formats`, `phase_jobs` and
`policy.py`. Begin with `tables.py` and `gaia.py`.
"""
