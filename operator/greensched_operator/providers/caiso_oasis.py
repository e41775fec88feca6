"""CAISO OASIS: California's day-ahead locational prices; no key, one request per five seconds.

Wire: https://oasis.caiso.com, report PRC_LMP version 12, as gridstatus reads it.
"""

import csv
import io
import re
import zipfile
import zlib
from datetime import UTC, datetime, timedelta
from typing import Annotated, ClassVar
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta

from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.answers import (
    Answer,
    Conversation,
    FaultReason,
    Interval,
    ProviderFault,
    Request,
    price_answer,
)
from greensched_operator.providers.decoding import accepted, garbage, moment
from greensched_operator.providers.secret_keys import SecretKey

_URL = "https://oasis.caiso.com/oasisapi/SingleZip"
_MARKET_ZONE = "America/Los_Angeles"
_ZIP_MAGIC = b"PK\x03\x04"
_MOST_UNPACKED_BYTES = 16 * 2**20  # two days of a node are 30 kB
_ERROR_CODE = re.compile(rb"ERR_CODE>\s*(\d{1,6})")
_NO_DATA_CODE = b"1000"


class CaisoOasis(msgspec.Struct, frozen=True, rename="camel"):
    """Day-ahead price of a node in California."""

    name: ClassVar[str] = "caisoOasis"
    serves: ClassVar[tuple[SignalKind, ...]] = ("price",)
    least_interval_s: ClassVar[float] = 900.0

    node: Annotated[
        str,
        Meta(min_length=1, max_length=100, description="Pricing node, such as TH_NP15_GEN-APND."),
    ]

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return nothing: it needs no key."""
        return ()

    def ask(self, now: float, secrets: tuple[str, ...]) -> Conversation:
        """Ask for today and tomorrow, from midnight to midnight in Pacific time."""
        zone = ZoneInfo(_MARKET_ZONE)
        today = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
        parameters = (
            ("resultformat", "6"),
            ("queryname", "PRC_LMP"),
            ("version", "12"),
            ("market_run_id", "DAM"),
            ("node", self.node),
            ("startdatetime", _gmt(today)),
            ("enddatetime", _gmt(today + timedelta(days=2))),
        )
        return read(accepted((yield Request(_URL, parameters))), self.node)


def _gmt(local: datetime) -> str:
    return local.astimezone(UTC).strftime("%Y%m%dT%H:%M-0000")


def read(body: bytes, node: str) -> Answer:
    """Return the prices in a zipped CSV. Raises ProviderFault."""
    if not body.startswith(_ZIP_MAGIC):
        if b"Acceptable Use Policy" in body:
            raise ProviderFault(
                FaultReason.RATE_LIMITED, "CAISO demands fewer requests (Acceptable Use Policy)"
            )
        raise garbage("the answer is not a zip")
    unpacked = _unpacked(body)
    if unpacked.lstrip().startswith(b"<"):
        found = _ERROR_CODE.search(unpacked)
        if found is not None and found[1] == _NO_DATA_CODE:
            raise ProviderFault(
                FaultReason.NO_DATA, "no data for the node and days (ERR_CODE 1000)"
            )
        raise garbage(f"refused with ERR_CODE {found[1].decode() if found else 'unknown'}")
    intervals = _intervals(unpacked.decode("utf-8", "replace"), node)
    return price_answer(intervals, "caiso-oasis/day-ahead", "USD")


def _unpacked(body: bytes) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            (name, *others) = archive.namelist()
            if others:
                raise garbage("the zip holds several files")
            with archive.open(name) as file:
                unpacked = file.read(_MOST_UNPACKED_BYTES + 1)
    # zipfile raises these for a damaged, encrypted or unusual archive.
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError) as fault:
        raise garbage("the zip cannot be read") from fault
    if len(unpacked) > _MOST_UNPACKED_BYTES:
        raise garbage(f"the zip holds more than {_MOST_UNPACKED_BYTES} bytes")
    return unpacked


def _intervals(text: str, node: str) -> list[Interval]:
    reader = csv.DictReader(io.StringIO(text))
    intervals = []
    try:
        for row in reader:
            if row.get("LMP_TYPE") != "LMP" or row.get("NODE") != node:
                continue  # a component of the price: energy, congestion, losses
            start = moment(row.get("INTERVALSTARTTIME_GMT"), "INTERVALSTARTTIME_GMT")
            end = moment(row.get("INTERVALENDTIME_GMT"), "INTERVALENDTIME_GMT")
            intervals.append(Interval(start, end, float(row.get("MW") or "nan")))
    except (csv.Error, ValueError, TypeError) as fault:  # the column MW holds $/MWh
        raise garbage("the CSV cannot be read") from fault
    return intervals
