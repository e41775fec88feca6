"""What keeps a release from being made."""

from greensched_core.errors import GreenSchedError


class ReleaseFault(GreenSchedError):
    """Says what is wrong, where, and what to do."""
