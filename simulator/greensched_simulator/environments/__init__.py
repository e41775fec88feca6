"""Environments to train in: the engine stops wherever an agent decides, and goes on as it says.

Imports `runs`, `world`, `engine`, `arrays`, `compiling` and `policy.py`. Begin with `single.py`;
`episodes.py` is the engine that stops.
"""
