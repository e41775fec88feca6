"""RFC 3339 timestamps, the only format of times in the Kubernetes API."""

import re
from datetime import UTC, datetime

from greensched_core.errors import BadInput

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}:\d{2})(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_MICROSECOND_DIGITS = 6


def parse_timestamp(text: str) -> float:
    """Return seconds since the Unix epoch; fractions below microseconds are cut.

    Raises BadInput if `text` is not an RFC 3339 timestamp with a time zone.
    """
    match = _RFC3339.fullmatch(text.strip())
    if match is not None:
        date, time, fraction, offset = match.groups()
        fraction = f"{fraction[: _MICROSECOND_DIGITS + 1]:0<7}" if fraction else ""
        offset = "+00:00" if offset in "Zz" else offset
        try:
            return datetime.fromisoformat(f"{date}T{time}{fraction}{offset}").timestamp()
        except (ValueError, OverflowError):
            pass  # a 13th month, a leap second, an offset of 99 hours
    raise BadInput(
        f"{text[:60]!r} is not an RFC 3339 timestamp; write for example 2026-11-21T10:00:00Z"
    )


def format_timestamp(seconds: float) -> str:
    """Write seconds since the Unix epoch in UTC, with a fraction only if not zero.

    Raises BadInput outside the years 1 to 9999.
    """
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        raise BadInput(f"{seconds} s since the epoch is outside the years 1 to 9999") from None
    return _written(moment, "microseconds" if moment.microsecond else "seconds")


def format_micro_time(seconds: float) -> str:
    """Write seconds as a MicroTime, as in a Lease: always with six fractional digits."""
    return _written(datetime.fromtimestamp(seconds, UTC), "microseconds")


def _written(moment: datetime, unit: str) -> str:
    return moment.isoformat(timespec=unit).replace("+00:00", "Z")
