"""From the quietHours of a GreenPolicy to the hours that are kept."""

import re
from collections.abc import Iterable
from zoneinfo import ZoneInfo

from greensched_core.errors import BadInput
from greensched_core.quoting import near, quoted
from greensched_operator.objects.quiet_hours import (
    DAYS,
    EVERY_DAY,
    MINUTES_A_DAY,
    QuietHours,
    QuietWindow,
)
from greensched_operator.objects.resource_fields import QuietFields

MOST_WINDOWS = 20
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00", re.ASCII)


def read_quiet_hours(items: Iterable[QuietFields], where: str) -> QuietHours:
    """Return the quiet hours; raise BadInput for the first item that cannot be kept."""
    windows = tuple(_window(item, f"{where}[{n}]") for n, item in enumerate(items))
    if len(windows) > MOST_WINDOWS:
        raise BadInput(f"{where}: {len(windows)} windows are more than {MOST_WINDOWS}")
    return QuietHours(windows)


def _window(item: QuietFields, where: str) -> QuietWindow:
    if item.begin is None or item.end is None:
        raise BadInput(f"{where}: quiet hours need from and to, such as 22:00 and 06:00")
    begin, end = _minute(item.begin, f"{where}.from"), _minute(item.end, f"{where}.to")
    if begin == MINUTES_A_DAY:
        raise BadInput(f"{where}.from: a day begins at 00:00; 24:00 is its end")
    if begin == end:
        raise BadInput(f"{where}: from and to are the same; a whole day is 00:00 to 24:00")
    days = EVERY_DAY if item.days is None else _days(item.days, f"{where}.days")
    return QuietWindow(begin, end, _zone(item.timeZone or "UTC", f"{where}.timeZone"), days)


def _minute(text: str, where: str) -> int:
    found = _TIME.fullmatch(text)
    if found is None:
        raise BadInput(f"{where}: {quoted(text)} is no time of the day, such as 22:00")
    hour, minute = found.groups()
    return MINUTES_A_DAY if hour is None else int(hour) * 60 + int(minute)


def _days(names: list[str], where: str) -> frozenset[int]:
    for name in names:
        if name not in DAYS:
            told = f"{quoted(name)} is none of {', '.join(DAYS)}"
            raise BadInput(f"{where}: {told}{near(name, DAYS)}")
    if not names:
        raise BadInput(f"{where}: it is empty, so that these hours never begin")
    return frozenset(DAYS.index(name) for name in names)


def _zone(name: str, where: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, no name of a file, or that of a folder
        raise BadInput(f"{where}: {quoted(name)} is no time zone such as Europe/Berlin") from None
