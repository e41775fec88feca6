"""Bills of schedules: energy, carbon and money, integrated exactly.

Imports `costs`. Begin with `accounting.py`.
"""
