"""Quotes of what others wrote, short enough to be logged and remembered."""

LONGEST_QUOTE = 60  # characters; longer than any sensible quantity, duration or number


def quoted(text: str) -> str:
    """Return `text` as Python writes it, cut after 60 characters, the rest told as a count."""
    if len(text) <= LONGEST_QUOTE:
        return repr(text)
    return f"{text[:LONGEST_QUOTE]!r}… ({len(text)} characters)"
