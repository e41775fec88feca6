"""Providers of carbon and price: one module each, which describes a conversation with its API.

Imports nothing else of this package. Begin with `answers.py` and `catalogue.py`.
"""
