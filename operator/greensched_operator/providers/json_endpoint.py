"""A user's own JSON endpoint: paths in the GridSignal lead to its slots."""

from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from greensched_core.signals.steps import SignalKind
from greensched_core.units import SECONDS_PER_HOUR
from greensched_operator.providers.answers import (
    Answer,
    Conversation,
    FaultReason,
    Interval,
    ProviderFault,
    Request,
    carbon_answer,
    price_answer,
)
from greensched_operator.providers.decoding import (
    accepted,
    decoded_number,
    garbage,
    json_of,
    moment,
    moment_if_any,
    rows,
)
from greensched_operator.providers.fields import Currency, Multiply, SlotSeconds, checked
from greensched_operator.providers.secret_keys import SecretKey, TokenRef

_MILLISECONDS_FROM = 1e11  # as epoch seconds it is after the year 5138


def _path(to: str) -> Meta:
    return Meta(max_length=200, description=f"Dotted path to {to}")


class JsonEndpoint(msgspec.Struct, frozen=True, rename="camel"):
    """Values from an address of your own that answers JSON.

    Dotted paths lead to slots, starts and values within the answer. With `slots`, the other paths
    begin at each slot; without it, they lead to lists of equal length.
    """

    name: ClassVar[str] = "jsonEndpoint"
    serves: ClassVar[tuple[SignalKind, ...]] = ("carbon", "price")
    least_interval_s: ClassVar[float] = 60.0
    checks: ClassVar[tuple[tuple[str, str], ...]] = (
        ("!(has(self.end) && has(self.slotSeconds))", "set end or slotSeconds, not both"),
    )

    url: Annotated[
        str,
        checked(
            "self.matches('^https?://[^/?#@ ]+([/?#][^ ]*)?$')",
            "url must begin with http:// or https:// and hold no user or password; put a key into "
            "secretRef",
            max_length=2_000,
        ),
    ]
    start: Annotated[str, _path("a slot's start, RFC 3339 or epoch seconds.")]
    value: Annotated[str, _path("a slot's value.")]
    slots: (
        Annotated[
            str,
            _path(
                'the list of slots ("" is the answer itself); start and value are then paths '
                "within a slot. Without it they lead to lists of equal length."
            ),
        ]
        | None
    ) = None
    end: Annotated[str, _path("a slot's end.")] | None = None
    slot_seconds: SlotSeconds | None = None  # without `end`
    multiply: Multiply = 1.0
    currency: Currency = ""
    observed_at: Annotated[str, _path("the time at which the source made its values.")] | None = (
        None
    )
    header: Annotated[
        str,
        checked(
            "self.matches('^[A-Za-z0-9-]+$')",
            "header may hold letters, digits and '-'",
            description="Header that is set to the value from secretRef, unchanged.",
            max_length=60,
        ),
    ] = "Authorization"
    secret_ref: TokenRef | None = None  # its value is the whole header value

    def secret_keys(self) -> tuple[SecretKey, ...]:
        """Return the key of the header's value, if there is one."""
        return () if self.secret_ref is None else (self.secret_ref.secret_key(),)

    def ask_for(self, kind: SignalKind, secrets: tuple[str, ...]) -> Conversation:
        """Ask for carbon or a price, which have the same format."""
        headers = tuple((self.header, secret) for secret in secrets)
        reply = yield Request(self.url, (), headers)
        # Authors of GridSignals must not read what else the operator can reach.
        return read(accepted(reply, refusals=_REFUSALS, quotes=False), self, kind)


_REFUSALS = {400: FaultReason.UNKNOWN_ZONE, 404: FaultReason.NO_DATA}


def read(body: bytes, endpoint: JsonEndpoint, kind: SignalKind) -> Answer:
    """Return the values at the paths. Raises ProviderFault, which repeats no text of the answer."""
    whole = json_of(body)
    starts, ends, values = _columns(whole, endpoint)
    if not len(starts) == len(ends) == len(values):
        raise garbage("the lists of starts, ends and values differ in length")
    begins = [_when(raw) for raw in starts]
    step_s = endpoint.slot_seconds or _step_s(begins)
    intervals = []
    for begin, end, raw in zip(begins, ends, values, strict=True):
        found = decoded_number(raw, "a value")
        value = None if found is None else found * endpoint.multiply
        intervals.append(Interval(begin, begin + step_s if end is None else _when(end), value))
    observed_at = None
    if endpoint.observed_at is not None:
        observed_at = moment_if_any(_at(whole, endpoint.observed_at))
    if kind == "carbon":
        return carbon_answer(intervals, "json-endpoint", observed_at=observed_at)
    return price_answer(intervals, "json-endpoint", endpoint.currency, observed_at=observed_at)


def _columns(whole: Any, endpoint: JsonEndpoint) -> tuple[list[Any], list[Any], list[Any]]:
    if endpoint.slots is None:
        starts = list(rows(_at(whole, endpoint.start), "start"))
        values = list(rows(_at(whole, endpoint.value), "value"))
        ends = [None] * len(starts)
        if endpoint.end is not None:
            ends = list(rows(_at(whole, endpoint.end), "end"))
        return starts, ends, values
    slots = rows(_at(whole, endpoint.slots), "slots")
    ends = [None if endpoint.end is None else _at(slot, endpoint.end) for slot in slots]
    values = [_at(slot, endpoint.value, or_none=True) for slot in slots]
    return [_at(slot, endpoint.start) for slot in slots], ends, values


def _at(raw: Any, path: str, *, or_none: bool = False) -> Any:
    """Return the value at a dotted path; a number is a list index, negative from the end."""
    for name in path.split(".") if path else []:
        try:
            raw = raw[int(name)] if isinstance(raw, list) else raw[name]
        except (KeyError, IndexError, ValueError, TypeError):
            if or_none:
                return None
            raise ProviderFault(
                FaultReason.GARBAGE, f"the answer has nothing at {path!r}"
            ) from None
    return raw


def _when(raw: Any) -> float:
    if isinstance(raw, str):
        return moment(raw, "a start or end")
    seconds = decoded_number(raw, "a start or end")
    if seconds is None:
        raise garbage("a start or end is null")
    return seconds / 1_000 if seconds > _MILLISECONDS_FROM else seconds


def _step_s(begins: list[float]) -> float:
    ordered = sorted(set(begins))
    steps = [later - earlier for earlier, later in zip(ordered, ordered[1:], strict=False)]
    return min(steps, default=SECONDS_PER_HOUR)
