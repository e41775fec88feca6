"""Kinds of the fields of quiet hours: times of the day, a time zone, days of the week."""

import re
from zoneinfo import ZoneInfo

from greensched_core.custom_resources.fields import FieldKind, SchemaRule, many, plain
from greensched_core.errors import BadInput
from greensched_core.quoting import near, quoted

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")  # in the order of date.weekday()
EVERY_DAY = frozenset(range(len(DAYS)))
MINUTES_A_DAY = 24 * 60
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)|24:00", re.ASCII)
_NO_ZONE = "timeZone must be an IANA name, such as Europe/Berlin or UTC"


def _minute(raw: object, where: str) -> int:
    given = plain(str, raw, where)
    found = _TIME.fullmatch(given)
    if found is None:
        raise BadInput(f"{where}: {quoted(given)} is not a time of day; use one such as 22:00")
    hour, minute = found.groups()
    return MINUTES_A_DAY if hour is None else int(hour) * 60 + int(minute)


def _first_minute(raw: object, where: str) -> int:
    minute = _minute(raw, where)
    if minute == MINUTES_A_DAY:
        raise BadInput(f"{where}: 24:00 can only end quiet hours; write 00:00")
    return minute


def _zone(raw: object, where: str) -> ZoneInfo:
    name = plain(str, raw, where) or "UTC"
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, not a file name, or a folder
        raise BadInput(
            f"{where}: {quoted(name)} is not a time zone; use one such as Europe/Berlin"
        ) from None


def _day(raw: object, where: str) -> int:
    name = plain(str, raw, where)
    if name not in DAYS:
        raise BadInput(f"{where}: {quoted(name)} is none of {', '.join(DAYS)}{near(name, DAYS)}")
    return DAYS.index(name)


def _days(days: tuple[int, ...], where: str) -> frozenset[int]:
    if not days:
        raise BadInput(
            f"{where}: it is empty, so these hours never begin; leave it out for every day"
        )
    return frozenset(days)


BEGIN = FieldKind(
    _first_minute,
    {"type": "string", "maxLength": 5},
    "`HH:MM`",
    (
        SchemaRule(
            "self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",
            "from must be a time of the day with two digits each, 00:00 to 23:59, such as 22:00",
        ),
    ),
)
END = FieldKind(
    _minute,
    {"type": "string", "maxLength": 5},
    "`HH:MM`",
    (
        SchemaRule(
            "self.matches('^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$')",
            "to must be a time of the day with two digits each, 00:00 to 24:00, such as 06:00",
        ),
    ),
)
ZONE = FieldKind(
    _zone,
    {"type": "string", "minLength": 1, "maxLength": 64},
    "IANA name",
    (
        SchemaRule(
            "self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$') && self != 'Local'", _NO_ZONE
        ),
        SchemaRule(
            "self.matches('^[^A-Z]') || timestamp('2026-01-01T00:00:00Z').getHours(self) >= 0",
            _NO_ZONE,
        ),
    ),
)
SOME_DAYS = many(
    FieldKind(_day, {"type": "string", "enum": list(DAYS)}, ""),
    len(DAYS),
    _days,
    SchemaRule(
        "self.size() > 0",
        "days is empty, so these hours never begin; leave days out for every day",
    ),
    unit="`Mon` … `Sun`",
    list_type="set",
)
