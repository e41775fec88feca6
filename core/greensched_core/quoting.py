"""Quotes of what others wrote, short enough to be logged and remembered, and what they meant."""

import difflib
from collections.abc import Iterable

LONGEST_QUOTE = 60  # characters; longer than any sensible quantity, duration or number


def quoted(text: str) -> str:
    """Return `text` as Python writes it, cut after 60 characters, the rest told as a count."""
    if len(text) <= LONGEST_QUOTE:
        return repr(text)
    return f"{text[:LONGEST_QUOTE]!r}… ({len(text)} characters)"


def near(name: str, known: Iterable[str]) -> str:
    """Return ` (close: a, b)` for the known names that are like this one, else nothing."""
    spelt = {str(each).lower(): str(each) for each in known}
    close = difflib.get_close_matches(name.lower(), list(spelt), n=3, cutoff=0.6)
    return f" (close: {', '.join(spelt[each] for each in close)})" if close else ""
