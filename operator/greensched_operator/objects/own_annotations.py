"""Annotations with our prefix on an object: all known ones, and a limited number of unknown ones.

Anyone who may create a Job may write thousands of them. Each costs time in the loop that starts
work, and memory while the object exists, so the number that is kept and compared has a limit.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from itertools import islice

from greensched_core import labels
from greensched_core.quoting import quoted

MOST_UNKNOWN = 32  # of an object; more are reported as one fault
_PREFIX = f"{labels.GROUP}/"
_KNOWN = labels.ASKED | labels.WRITTEN | {labels.RUNTIMES, labels.DURATIONS_OF_010}
_NEARLY = 0.9  # similarity of names with their prefix: one or two letters are wrong
_LONGEST = max(map(len, labels.ASKED)) * (2 / _NEARLY - 1)  # longer names resemble none of ours


def ours(found: Mapping[str, str] | None) -> dict[str, str]:
    """Return the annotations with our prefix; at most MOST_UNKNOWN + 1 unknown, without values."""
    if not found:
        return {}
    known = with_latest_start({name: found[name] for name in _KNOWN & found.keys()})
    unknown = (name for name in found if name.startswith(_PREFIX) and name not in _KNOWN)
    return known | dict.fromkeys(islice(unknown, MOST_UNKNOWN + 1), "")


def with_latest_start(found: Mapping[str, str]) -> dict[str, str]:
    """Return annotations in which a latest start under its old name has its current name."""
    renamed = {name: text for name, text in found.items() if name != labels.LATEST_START_OF_010}
    if labels.LATEST_START_OF_010 in found:
        renamed.setdefault(labels.LATEST_START, found[labels.LATEST_START_OF_010])
    return renamed


def misspelt(annotations: Mapping[str, str]) -> list[str]:
    """Return a message for each name that is probably a misspelt one of ours, or one for too many.

    Names count as misspelt if they resemble one of ours.
    """
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
    """Return our annotation that a name resembles, or "" for none."""
    close = get_close_matches(name, sorted(labels.ASKED), 1, _NEARLY)
    return close[0] if close else ""
