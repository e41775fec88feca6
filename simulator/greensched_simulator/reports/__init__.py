"""Reports of runs: pages that need no network, and the same plots for papers.

Imports `results` and `policy.py`. Begin with `report.py`.
"""
