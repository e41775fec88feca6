"""Annotations of our prefix on an object: all that we know, and few of those that we do not.

Whoever may create a Job may write thousands of them. Each costs time in the loop that starts work
and memory for as long as the object is there; so what is kept and compared has a bound.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice

from greensched_core import labels
from greensched_core.quoting import quoted

MOST_UNKNOWN = 32  # of an object; more are one fault
_PREFIX = f"{labels.GROUP}/"
_KNOWN = labels.ASKED | labels.WRITTEN | {labels.RUNTIMES}
_NEARLY = 0.9  # of a name, its prefix included: one or two letters are wrong
_LONGEST = max(map(len, labels.ASKED)) * (2 / _NEARLY - 1)  # what is longer is not nearly any


def ours(said: Mapping[str, str] | None) -> dict[str, str]:
    """Return those of our prefix; of unknown names one more than are compared, without values."""
    if not said:
        return {}
    known = with_latest_start({name: said[name] for name in _KNOWN & said.keys()})
    unknown = (name for name in said if name.startswith(_PREFIX) and name not in _KNOWN)
    return known | dict.fromkeys(islice(unknown, MOST_UNKNOWN + 1), "")


def with_latest_start(said: Mapping[str, str]) -> dict[str, str]:
    """Return annotations in which the latest start has today's name, whoever wrote it."""
    written = {name: text for name, text in said.items() if name != labels.HOLD_UNTIL}
    if labels.HOLD_UNTIL in said:
        written.setdefault(labels.LATEST_START, said[labels.HOLD_UNTIL])
    return written


def misspelt(annotations: Mapping[str, str]) -> list[str]:
    """Name what is nearly one of ours: it was meant to be one. Of too many, say only that."""
    unknown = annotations.keys() - _KNOWN
    if len(unknown) > MOST_UNKNOWN:
        return [
            f"more than {MOST_UNKNOWN} annotations that begin with {_PREFIX} are unknown; remove "
            "them, or use another prefix"
        ]
    found = ((name, _meant(name)) for name in unknown if len(name) <= _LONGEST)
    return sorted(
        f"{quoted(name)} is not an annotation of GreenSched; did you mean {one}?"
        for name, one in found
        if one
    )


@lru_cache(maxsize=4096)
def _meant(name: str) -> str:
    """Return which of ours a name is nearly, "" for none."""
    close = get_close_matches(name, sorted(labels.ASKED), 1, _NEARLY)
    return close[0] if close else ""
