"""Converts providers' answers to a GridSignal's status, and back after a restart; pure."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from greensched_core.errors import BadInput
from greensched_core.signals.grid import (
    GridSlot,
    SignalOrigin,
    ZoneForecast,
    parse_grid_signal,
    to_status,
)
from greensched_core.signals.readings import GRAMS_PER_KWH
from greensched_core.signals.steps import SignalKind
from greensched_core.signals.timestamps import format_timestamp, parse_timestamp
from greensched_operator.providers.answers import (
    PER_MWH,
    Answer,
    FaultReason,
    Slot,
    without_empty_ends,
)
from greensched_operator.signals.plan import (
    JITTER,
    LATE_S,
    Failure,
    KeptAnswer,
    SignalPlan,
    interval_s,
)
from greensched_operator.signals.spec import KINDS, SignalSpec
from greensched_operator.signals.web import LONGEST_RETRY_AFTER_S

MOST_SLOTS = 1_000  # as in the CRD
_KEPT_BEFORE_S = 86_400.0  # the past day, from which readers fill holes by the same hour
_LONGEST_MESSAGE = 500
_OURS = {f"{kind.title()}{what}" for kind in KINDS for what in ("Fresh", "Fallback")}  # conditions
_NO_VALUES = ("observedAt", "source", "current", "forecast", "forecastEnd")

Plans = Mapping[SignalKind, SignalPlan]


def status_of(
    spec: SignalSpec, plans: Plans, conditions: Sequence[Mapping[str, Any]], now: float
) -> dict[str, Any]:
    """Return the whole status; conditions that are not ours are kept unchanged."""
    held = {kind: found for kind, plan in plans.items() if (found := plan.good(now))}
    status: dict[str, Any] = dict.fromkeys(_NO_VALUES)
    if held:
        status |= to_status(_forecast(spec, held, now))
    for kind in KINDS:
        part = status.get(kind) or {}
        plan = plans[kind]
        if kind in held:
            part["provider"] = held[kind].provider.name
            part["place"] = plan.providers.index(held[kind].provider)
        if plan.failures:
            part["failures"] = _failures(plan)
        status[kind] = part or None
    status["observedGeneration"] = spec.generation
    ours = [each for kind in KINDS for each in _conditions(spec, kind, plans[kind], now)]
    status["conditions"] = _dated(ours, conditions, now)
    return {name: value for name, value in status.items() if value is not None}


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch from one object to another; empty if they are equal."""
    patch: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            inner = merge_patch(before, value)
            if inner:
                patch[name] = inner
        elif value != before or name not in old:
            patch[name] = value
    return patch


def handed_over(status: Mapping[str, Any]) -> dict[str, Any]:
    """Return the merge patch for a status that users fill from now on; empty if it is clean.

    It removes what we wrote of providers: readers would take the new values for theirs, with their
    age and their end. The values themselves stay until they are replaced.
    """
    patch: dict[str, Any] = {
        kind: None
        for kind in KINDS
        if isinstance(part := status.get(kind), Mapping) and part.keys() & {"provider", "failures"}
    }
    found = status.get("conditions")
    old = found if isinstance(found, list) else []
    kept = [each for each in old if not (isinstance(each, Mapping) and each.get("type") in _OURS)]
    return patch if kept == old else patch | {"conditions": kept}


def next_change(plans: Plans, now: float) -> float:
    """Return when the status next changes with time alone; infinity for never."""
    times = []
    for plan in plans.values():
        held = plan.good(now)
        if held is None:
            continue
        known_at = min(held.read_at, held.answer.end)
        limits = plan.limits
        times += [known_at + limits.fresh_s, known_at + limits.max_stale_s, held.answer.end]
        place = bisect_right(held.answer.slots, now, key=lambda slot: slot.start)
        starts = [slot.start for slot in held.answer.slots[: place + 1]]
        times += [starts[-1], *(edge + LATE_S for edge in (*starts, held.answer.end))]
    return min((time for time in times if time > now), default=float("inf"))


def _forecast(spec: SignalSpec, held: Mapping[SignalKind, KeptAnswer], now: float) -> ZoneForecast:
    slots, end = _merged({kind: one.answer for kind, one in held.items()}, now)
    origins = {kind: _origin(spec, kind, one, end) for kind, one in held.items()}
    sources = list(dict.fromkeys(origin.source for origin in origins.values()))
    return ZoneForecast(
        zone=spec.zone,
        currency=spec.currency,
        observed_at=min(one.read_at for one in held.values()),
        source=" + ".join(sources),
        current=_current(held, now),
        forecast=slots,
        forecast_end=end,
        is_estimated=any(origin.is_estimated for origin in origins.values()),
        own_carbon_origin=origins.get("carbon"),
        own_price_origin=origins.get("price"),
    )


def _origin(spec: SignalSpec, kind: SignalKind, held: KeptAnswer, end: float) -> SignalOrigin:
    answer = held.answer
    return SignalOrigin(
        answer.source,
        held.read_at,
        min(answer.end, end),
        answer.is_estimated,
        (answer.currency or spec.currency) if kind == "price" else "",
    )


def _current(held: Mapping[SignalKind, KeptAnswer], now: float) -> GridSlot | None:
    """Return the values now; a source's next value may be up to an hour late."""
    found: dict[SignalKind, Slot] = {}
    for kind, one in held.items():
        slot = one.answer.at(now, LATE_S)
        if slot is not None:
            found[kind] = slot
    if not found:
        return None
    carbon, price = found.get("carbon"), found.get("price")
    return GridSlot(
        max(slot.start for slot in found.values()),
        carbon.value if carbon else None,
        price.value if price else None,
    )


def _merged(answers: Mapping[SignalKind, Answer], now: float) -> tuple[tuple[GridSlot, ...], float]:
    """Return the slots of both signals with common edges, and the end of the last one."""
    end = max(answer.end for answer in answers.values())
    # If one signal ends before the other, a slot without it begins there.
    edges = {answer.end for answer in answers.values() if answer.end < end}
    edges |= {slot.start for answer in answers.values() for slot in answer.slots}
    ordered = sorted(edge for edge in edges if edge < end)
    running = max(bisect_right(ordered, now) - 1, 0)
    first = min(bisect_right(ordered, now - _KEPT_BEFORE_S), running)
    first = max(first, min(running, len(ordered) - MOST_SLOTS))
    kept = ordered[first : first + MOST_SLOTS]
    if len(ordered) > first + MOST_SLOTS:
        end = ordered[first + MOST_SLOTS]
    values = {kind: _at_edges(answer, kept) for kind, answer in answers.items()}
    nothing = [None] * len(kept)
    merged = zip(kept, values.get("carbon", nothing), values.get("price", nothing), strict=True)
    return tuple(GridSlot(*slot) for slot in merged), end


def _at_edges(answer: Answer, edges: Iterable[float]) -> Sequence[float | None]:
    starts = [slot.start for slot in answer.slots]
    values: list[float | None] = []
    for edge in edges:
        place = bisect_right(starts, edge) - 1
        is_known = place >= 0 and edge < answer.end
        values.append(answer.slots[place].value if is_known else None)
    return values


def _failures(plan: SignalPlan) -> list[dict[str, Any]]:
    return [
        {
            "provider": provider.name,
            "place": place,
            "reason": str(failure.reason),
            "message": failure.text[:_LONGEST_MESSAGE],
            "times": failure.times,
            "retryAt": format_timestamp(failure.retry_at),
        }
        for place, provider in enumerate(plan.providers)
        if (failure := plan.failures.get(provider)) is not None
    ]


def _conditions(
    spec: SignalSpec, kind: SignalKind, plan: SignalPlan, now: float
) -> list[dict[str, str]]:
    if not plan.providers and kind not in spec.faults:
        return []
    failure_text = "; ".join(
        f"{provider.name}: {plan.failures[provider].reason}: {plan.failures[provider].text}"
        for provider in plan.providers
        if provider in plan.failures
    )
    failure_text = failure_text or spec.faults.get(kind, "")
    held = plan.good(now)
    return [_fresh(kind, plan, held, failure_text, now), _fallback(kind, plan, held, failure_text)]


def _fresh(
    kind: SignalKind, plan: SignalPlan, held: KeptAnswer | None, failure_text: str, now: float
) -> dict[str, str]:
    if held is None:
        why = failure_text or "not asked yet"
        return _condition(f"{kind.title()}Fresh", False, "NoData", f"no values: {why}")
    source = held.answer.source
    is_fresh = now <= min(held.read_at, held.answer.end) + plan.limits.fresh_s
    read_at = format_timestamp(float(int(held.read_at)))
    if is_fresh:
        return _condition(f"{kind.title()}Fresh", True, "Answered", f"from {source}")
    last = f"last good values of {source}, read at {read_at}, are used: {failure_text}"
    return _condition(f"{kind.title()}Fresh", False, "LastGood", last)


def _fallback(
    kind: SignalKind, plan: SignalPlan, held: KeptAnswer | None, failure_text: str
) -> dict[str, str]:
    name = f"{kind.title()}Fallback"
    if plan.is_served_by_first():
        return _condition(name, False, "FirstProviderServes", plan.providers[0].name)
    first = plan.failures.get(plan.providers[0]) if plan.providers else None
    reason = "Unreadable" if not plan.providers else "NotAskedYet"
    if first is not None:
        reason = "".join(word.title() for word in re.split(r"\W+", str(first.reason)))
    instead = "no other values are left"
    if held is not None:
        source = held.answer.source
        last_good = f"the last good values of {source} are used instead"
        instead = last_good if plan.is_last_good() else f"{source} is used instead"
    return _condition(name, True, reason, f"{failure_text}; {instead}" if failure_text else instead)


def _condition(name: str, holds: bool, reason: str, message: str) -> dict[str, str]:
    return {
        "type": name,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": message[:_LONGEST_MESSAGE],
    }


def _dated(
    ours: Sequence[Mapping[str, str]], old: Sequence[Mapping[str, Any]], now: float
) -> list[dict[str, Any]]:
    """Return our conditions with the time of their last transition, followed by all others."""
    before = {each.get("type"): each for each in old}
    dated = []
    for condition in ours:
        known = before.get(condition["type"], {})
        since = known.get("lastTransitionTime")
        if known.get("status") != condition["status"] or not since:
            since = format_timestamp(float(int(now)))
        dated.append({**condition, "lastTransitionTime": since})
    return dated + [dict(each) for each in old if each.get("type") not in _OURS]


def restored(
    plan: SignalPlan,
    kind: SignalKind,
    spec: SignalSpec,
    status: Mapping[str, Any],
    now: float,
    chance: float,
) -> SignalPlan:
    """Return the plan from the status of the same spec, so that a restart repeats no request.

    A provider whose part cannot be read counts as not asked yet.
    """
    part = status.get(kind)
    if not isinstance(part, Mapping) or status.get("observedGeneration") != spec.generation:
        return plan
    raw = {"spec": {"zone": spec.zone, "currency": spec.currency}, "status": status}
    forecast, _ = parse_grid_signal(raw, now)
    read = None if forecast is None else _restored_held(plan, kind, forecast, part, chance)
    failures = dict(_restored_failures(plan, part.get("failures"), now))
    return SignalPlan(plan.providers, plan.interval_s, read, failures, plan.limits)


def _restored_held(
    plan: SignalPlan,
    kind: SignalKind,
    forecast: ZoneForecast,
    part: Mapping[str, Any],
    chance: float,
) -> KeptAnswer | None:
    place = part.get("place")
    if not isinstance(place, int) or not 0 <= place < len(plan.providers):
        return None
    is_carbon = kind == "carbon"
    origin = forecast.own_carbon_origin if is_carbon else forecast.own_price_origin
    values = [
        Slot(slot.start, slot.carbon_g_per_kwh if is_carbon else slot.price_per_mwh)
        for slot in forecast.forecast
    ]
    slots = without_empty_ends(tuple(values))
    if origin is None or not slots:
        return None
    provider = plan.providers[place]
    end = origin.end if origin.end is not None else slots[-1].start
    unit = GRAMS_PER_KWH if is_carbon else f"{origin.currency}{PER_MWH}"
    answer = Answer(
        slots, end, unit, origin.source, origin.currency, is_estimated=origin.is_estimated
    )
    due_at = origin.observed_at + interval_s(plan, provider) * (1 + JITTER * chance)
    return KeptAnswer(provider, answer, origin.observed_at, due_at)


def _restored_failures(plan: SignalPlan, raw: object, now: float) -> Iterable[tuple[Any, Failure]]:
    """Yield failures; none delays a request longer than the longest accepted Retry-After."""
    for each in raw if isinstance(raw, list) else []:
        try:
            provider = plan.providers[int(each["place"])]
            reason, times = FaultReason(each["reason"]), int(each["times"])
            retry_at = min(parse_timestamp(each["retryAt"]), now + LONGEST_RETRY_AFTER_S)
            yield provider, Failure(reason, str(each["message"]), times, retry_at)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, BadInput):
            continue  # asked again immediately, as without a status
