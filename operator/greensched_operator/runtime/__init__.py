"""What every process of the operator has: settings, metrics, a Lease, and its own health.

Imports nothing else of this package. Begin with `settings.py`.
"""
