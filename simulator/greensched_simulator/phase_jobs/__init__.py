"""Jobs made of phases, and the cheapest plan of one: when it runs and when it is suspended.

Imports `compiling`. Begin with `phases.py`.
"""
