"""Training environments: the engine stops at each decision of an agent, and goes on with it.

Imports `runs`, `world`, `engine`, `arrays` and `policy.py`. Begin with `single.py`;
`episodes.py` is the engine that stops.
"""
