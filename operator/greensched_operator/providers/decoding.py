"""Reads untrusted JSON: each function returns the promised type or raises a ProviderFault."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from greensched_core.errors import BadInput
from greensched_core.quoting import quoted
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.providers.answers import FaultReason, ProviderFault, Reply


def garbage(text: str) -> ProviderFault:
    """Return the fault of an answer that is not as documented."""
    return ProviderFault(FaultReason.GARBAGE, text)


def json_of(body: bytes) -> Any:
    """Return the decoded JSON of `body`."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise garbage(f"the answer is not JSON ({len(body)} bytes)") from fault


def mapping(raw: object, what: str) -> Mapping[str, Any]:
    """Return a JSON object."""
    if isinstance(raw, Mapping):
        return raw
    raise garbage(f"{what} is not a JSON object")


def rows(raw: object, what: str) -> Sequence[Any]:
    """Return a JSON list."""
    if isinstance(raw, list):
        return raw
    raise garbage(f"{what} is not a list")


def decoded_text(raw: object) -> str:
    """Return text unchanged, and "" for anything else."""
    return raw if isinstance(raw, str) else ""


def decoded_number(raw: object, what: str) -> float | None:
    """Return a number; null is no data."""
    if raw is None:
        return None
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        try:
            value = float(raw)
        except OverflowError:  # an integer of 400 digits
            value = math.inf
        if math.isfinite(value):
            return value
    raise garbage(f"{what} is not a number")


def moment(raw: object, what: str) -> float:
    """Return the epoch seconds of an RFC 3339 time, with or without seconds."""
    written = decoded_text(raw)
    if len(written) == len("2026-01-20T12:00Z") and written.endswith("Z"):
        written = f"{written[:-1]}:00Z"
    try:
        return parse_timestamp(written)
    except BadInput:
        raise garbage(f"{what} is not a time with a zone") from None


def moment_if_any(raw: object) -> float | None:
    """Return the epoch seconds of a time; None if it is absent or unreadable."""
    try:
        return moment(raw, "")
    except ProviderFault:
        return None


def says(reply: Reply) -> str:
    """Return the short text of a refusal: `message`, `msg` or `error` in JSON, else plain text."""
    try:
        raw = msgspec.json.decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        words = reply.body[:200].decode(errors="replace")
        return quoted(words) if words.isprintable() else "no text"
    found = raw
    for name in ("message", "msg", "error"):
        if isinstance(raw, Mapping) and isinstance(raw.get(name), str):
            found = raw[name]
            break
    return quoted(found) if isinstance(found, str) else "no text"


def accepted(
    reply: Reply, *, refusals: Mapping[int, FaultReason] | None = None, quotes: bool = True
) -> bytes:
    """Return the body of a reply below 300; raise ProviderFault for a refusal.

    `refusals` overrides the usual meaning of statuses. Without `quotes` the fault does not repeat
    the text of the refusal.
    """
    if reply.status < 300:
        return reply.body
    meaning = {
        401: FaultReason.UNAUTHORISED,
        403: FaultReason.UNAUTHORISED,
        404: FaultReason.UNKNOWN_ZONE,
        **(refusals or {}),
    }
    reason = meaning.get(reply.status, FaultReason.GARBAGE)
    raise ProviderFault(reason, f"HTTP {reply.status}" + (f": {says(reply)}" if quotes else ""))
