"""What all processes of the operator share: settings, shared metrics, a Lease, health checks.

Imports nothing else of this package. Begin with `settings.py`.
"""
