"""What keeps a release from being made."""


class ReleaseFault(Exception):
    """Says what is wrong, where, and what to do."""
