"""The compiled event loop.

Imports its own folders from the bottom up, `state`, `execution` and `queue`, and `arrays` and
`compiling`. Begin with `run.py`, which has all of a run in one structure, and `engine.py`, which is
the loop; `plain_run.py` is the same loop for worlds without queues.
"""
