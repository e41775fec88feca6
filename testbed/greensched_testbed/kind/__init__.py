"""kind on a machine without Docker and image registry: an engine and a node image.

Imports `end_to_end`, `images` and `real_nodes`. Begin with `end_to_end.py`, which runs the tests;
`engine.py` starts the engine, and `node_image.py` makes the image.
"""
