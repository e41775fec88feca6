"""Power of machines: curves, and a catalogue of hardware that gives a node its curve.

Imports `errors.py`, `labels.py` and `quoting.py`. Begin with `curves.py`, then `catalogue.py`.
"""
