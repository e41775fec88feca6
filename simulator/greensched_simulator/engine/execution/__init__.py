"""Work on nodes: it starts, runs at a pace, is suspended, resumes, fails and ends.

Imports `state`. Begin with `running.py`.
"""
