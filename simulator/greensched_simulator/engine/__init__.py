"""The compiled event loop.

Imports its own folders from the bottom up (`state`, `execution`, `queue`), `arrays` and
`compiling`. Begin with `run.py`, which holds a whole run in one structure, and `engine.py`, the
loop. `plain_run.py` is the same loop for worlds without queues.
"""
