"""The admission webhook: held at creation, or not, with the reason; and its certificate.

Imports `holding`, `objects` and `runtime`. Begin with `admission.py`.
"""
