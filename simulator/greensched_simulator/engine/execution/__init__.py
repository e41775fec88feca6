"""Work on nodes: it starts, runs at a speed, is suspended, resumes, fails and ends.

Imports `run.py`, `state`, `arrays` and `compiling`. Begin with `running.py`.
"""
