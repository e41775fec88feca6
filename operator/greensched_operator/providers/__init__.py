"""Who knows what a grid does: one module per provider, each the description of a conversation.

Imports nothing else of this package. Begin with `answers.py` and `catalogue.py`.
"""
