"""The admission webhook, which holds workloads at their creation; and its certificate.

Imports `holding`, `objects` and `runtime`. Begin with `admission.py`.
"""
