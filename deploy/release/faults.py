"""The error of a release that cannot be made, verified or pushed."""

from greensched_core.errors import GreenSchedError


class ReleaseFault(GreenSchedError):
    """Says what is wrong, where, and what to do."""
