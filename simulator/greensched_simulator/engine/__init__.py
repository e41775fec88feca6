"""The compiled event loop.

Imports its own folders from the bottom up, `state`, `execution` and `queue`, and `arrays` and
`compiling`. Begin with `engine.py`; `plain_run.py` is the same loop for worlds without queues.
"""
