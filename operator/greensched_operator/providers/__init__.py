"""Who knows what a grid does: one module per provider, each the description of a conversation."""
