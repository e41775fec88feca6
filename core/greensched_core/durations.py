"""Durations as users write them: `90s`, `1h30m`, `2d`."""

import re

from greensched_core.errors import BadDuration
from greensched_core.quoting import quoted

_SECONDS = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
LONGEST_S = 10 * 365 * 86_400.0  # ten years; no scheduled work runs longer
_LONGEST = 64  # characters; parsing 240 kB takes 0.2 s, each time it is read
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s)", re.ASCII)
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+", re.ASCII)


def parse_duration(text: str) -> float:
    """Return the seconds of a duration such as `1h30m`; raise BadDuration otherwise.

    The units are those of Go's time.ParseDuration down to milliseconds, and `d` for 24 hours.
    Durations above ten years and texts above 64 characters are refused.
    """
    if len(text) > _LONGEST:
        raise BadDuration(f"{quoted(text)} is not a duration: at most {_LONGEST} characters")
    if _DURATION.fullmatch(text.strip()) is None:
        raise BadDuration(f"{quoted(text)} is not a duration; write for example 90s, 1h30m or 2d")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    if seconds > LONGEST_S:
        raise BadDuration(f"{quoted(text)} is too long; at most ten years, 3650d")
    return seconds


def format_duration(seconds: float) -> str:
    """Write seconds as a short duration: the two largest units that matter."""
    if seconds < 0:
        return "-" + format_duration(-seconds)
    if seconds < 60:
        return f"{seconds:.0f}s" if seconds >= 10 or seconds == int(seconds) else f"{seconds:.1f}s"
    total = round(seconds)
    days, rest = divmod(total, 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, secs = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (secs, "s")]
    first = next(i for i, (count, _) in enumerate(parts) if count)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count)
