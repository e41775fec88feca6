"""Times in the user's time zone, and how far away they are."""

from dataclasses import dataclass
from datetime import datetime, tzinfo

from greensched_core.durations import format_duration
from greensched_core.signals.timestamps import format_timestamp

NO_TIME = "–"


@dataclass(frozen=True, slots=True)
class LocalTimes:
    """Formats times in one zone, relative to one moment; all in seconds since the epoch."""

    now_s: float
    zone: tzinfo | None = None  # None: the machine's

    @property
    def zone_text(self) -> str:
        """Return the zone's name with its present offset from UTC."""
        now = self._local(self.now_s)
        return f"{now.tzname()} (UTC{now.isoformat()[-6:]})" if now.utcoffset() else "UTC"

    def short(self, at_s: float | None) -> str:
        """Return a time to the minute, with the parts of its date that differ from today's."""
        if at_s is None:
            return NO_TIME
        try:
            at, now = self._local(at_s), self._local(self.now_s)
        except (ValueError, OverflowError, OSError):  # the last hours of the year 9999
            return format_timestamp(at_s)
        date = "" if at.date() == now.date() else f"{at:%d %b} "
        year = "" if at.year == now.year else f"{at.year} "
        # The names differ across a change to or from daylight saving time.
        zone = "" if at.tzname() == now.tzname() else f" {at.tzname()}"
        return f"{date}{year}{at:%H:%M}{zone}"

    def whole(self, at_s: float | None) -> str:
        """Return a time to the second, with its date, its zone and its distance from now."""
        if at_s is None:
            return NO_TIME
        try:
            at = self._local(at_s)
        except (ValueError, OverflowError, OSError):
            return format_timestamp(at_s)
        return f"{at:%Y-%m-%d %H:%M:%S} {at.tzname()} ({self.away(at_s)})"

    def away(self, at_s: float | None) -> str:
        """Return `in 3h20m` or `5m ago`."""
        if at_s is None:
            return NO_TIME
        away_s = round(at_s - self.now_s)
        return f"in {format_duration(away_s)}" if away_s >= 0 else f"{format_duration(-away_s)} ago"

    def _local(self, at_s: float) -> datetime:
        if self.zone is not None:
            return datetime.fromtimestamp(at_s, self.zone)
        return datetime.fromtimestamp(at_s).astimezone()
