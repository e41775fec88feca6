"""What all processes of the operator share: settings, metrics, a Lease, and health checks.

Imports nothing else of this package. Begin with `settings.py`.
"""
