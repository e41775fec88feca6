"""Short quotes of input for logs and messages, and suggestions for misspelt names."""

import difflib
from collections.abc import Iterable

LONGEST_QUOTE = 60  # characters; longer than any sensible quantity, duration or number


def quoted(text: str) -> str:
    """Return `text` as Python writes it; above 60 characters it is cut and its length added."""
    if len(text) <= LONGEST_QUOTE:
        return repr(text)
    return f"{text[:LONGEST_QUOTE]!r}… ({len(text)} characters)"


def near(name: str, known: Iterable[str]) -> str:
    """Return ` (close: a, b)` with the known names that are similar, else ""."""
    spelt = {str(each).lower(): str(each) for each in known}
    close = difflib.get_close_matches(name.lower(), list(spelt), n=3, cutoff=0.6)
    return f" (close: {', '.join(spelt[each] for each in close)})" if close else ""
