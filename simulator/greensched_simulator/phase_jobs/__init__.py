"""Jobs made of phases, and the cheapest plan of one: when it runs and when it is suspended.

Imports nothing else of this package. Begin with `phases.py`.
"""
