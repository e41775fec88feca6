"""Which provider to ask next for one signal of one zone; pure, with clock and chance as arguments.

Providers are asked in order. A provider that fails rests for a growing time; meanwhile the next
one serves. After the rest, the better provider is asked again. If all fail, the last good values
remain for up to a day; only then the static table is read.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from greensched_core.signals.readings import GRAMS_PER_KWH
from greensched_core.signals.steps import AgeLimits
from greensched_operator.providers.answers import Answer, FaultReason, ProviderFault
from greensched_operator.providers.catalogue import Provider
from greensched_operator.providers.static import Static

JITTER = 0.1  # of an interval, so that zones do not ask all at once
LATE_S = 3_600.0  # a source may be an hour late with the next value
_OLDEST_S = 86_400.0  # greatest age of a carbon intensity, if its source dates it
_LONGEST_REST_S = 3_600.0
_LONGEST_REST_WITHOUT_KEY_S = 900.0  # shorter, since a person who repairs a Secret waits for it
_FIRST_REST_S: Mapping[FaultReason, float] = {
    FaultReason.UNREACHABLE: 60.0,
    FaultReason.SERVER_ERROR: 60.0,
    FaultReason.RATE_LIMITED: 300.0,
    FaultReason.NO_DATA: 300.0,
    FaultReason.TOO_OLD: 300.0,
    FaultReason.GARBAGE: 300.0,
    FaultReason.UNAUTHORISED: 300.0,
    FaultReason.UNKNOWN_ZONE: 900.0,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """How a provider failed, and until when it rests."""

    reason: FaultReason
    text: str
    times: int  # in a row
    retry_at: float  # epoch seconds


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A provider's answer; times in epoch seconds."""

    provider: Provider
    answer: Answer
    read_at: float
    due_at: float  # when it is asked again


@dataclass(frozen=True, slots=True)
class SignalPlan:
    """One signal of one zone: its providers, the current answer, and the failures."""

    providers: tuple[Provider, ...]
    interval_s: float
    held: KeptAnswer | None = None
    failures: Mapping[Provider, Failure] = field(default_factory=dict)
    limits: AgeLimits = field(default_factory=AgeLimits)

    def next_provider(self, now: float) -> Provider | None:
        """Return the provider to ask at `now`; None if none is due."""
        for place, provider in enumerate(self.providers):
            if isinstance(provider, Static) and place > 0 and self._outlasts_static(now):
                return None
            if self._due_at(provider) <= now:
                return provider
            if self._serves(provider):
                return None
        return None

    def due_at(self, now: float) -> float:
        """Return when a provider is due next, `now` at the earliest; infinity for never."""
        due = math.inf
        for place, provider in enumerate(self.providers):
            held = self.held
            if isinstance(provider, Static) and place > 0 and held and self._outlasts_static(now):
                due = min(due, self._good_until(held))
            else:
                due = min(due, self._due_at(provider))
            if self._serves(provider):
                break
        return max(due, now)

    def is_served_by_first(self) -> bool:
        """Return whether the first provider serves and has not failed since."""
        return bool(self.providers) and self._serves(self.providers[0])

    def is_last_good(self) -> bool:
        """Return whether the current answer could not be renewed when it was due."""
        return self.held is not None and self.held.provider in self.failures

    def good(self, now: float) -> KeptAnswer | None:
        """Return the current answer while it may still be used."""
        held = self.held
        return held if held is not None and now <= self._good_until(held) else None

    def _serves(self, provider: Provider) -> bool:
        held = self.held
        return held is not None and held.provider == provider and provider not in self.failures

    def _due_at(self, provider: Provider) -> float:
        failure = self.failures.get(provider)
        if failure is not None:
            return failure.retry_at
        if self.held is not None and self.held.provider == provider:
            return self.held.due_at
        return -math.inf

    def _outlasts_static(self, now: float) -> bool:
        held = self.held
        if held is None or isinstance(held.provider, Static):
            return False
        return now <= self._good_until(held)

    def _good_until(self, held: KeptAnswer) -> float:
        return min(held.read_at, held.answer.end) + self.limits.max_stale_s


def interval_s(plan: SignalPlan, provider: Provider) -> float:
    """Return the interval after which a provider is asked again."""
    return max(plan.interval_s, provider.least_interval_s)


def answered(
    plan: SignalPlan, provider: Provider, answer: Answer, now: float, chance: float
) -> SignalPlan:
    """Return the plan with an answer; `chance` in [0, 1) delays its next request."""
    due_at = now + interval_s(plan, provider) * (1 + JITTER * chance)
    failures = {other: kept for other, kept in plan.failures.items() if other != provider}
    return replace(plan, held=KeptAnswer(provider, answer, now, due_at), failures=failures)


def failed(
    plan: SignalPlan, provider: Provider, fault: ProviderFault, now: float, chance: float
) -> SignalPlan:
    """Return the plan in which a provider rests: twice as long each time, at most an hour.

    If a rate limit demands a longer time, that one applies.
    """
    before = plan.failures.get(provider)
    times = 1 if before is None else before.times + 1
    without_key = fault.reason is FaultReason.UNAUTHORISED
    longest_s = _LONGEST_REST_WITHOUT_KEY_S if without_key else _LONGEST_REST_S
    rest_s = min(_FIRST_REST_S[fault.reason] * 2.0 ** min(times - 1, 10), longest_s)
    rest_s = max(rest_s, fault.retry_after_s or 0.0) * (1 + JITTER * chance)
    failure = Failure(fault.reason, str(fault), times, now + rest_s)
    return replace(plan, failures={**plan.failures, provider: failure})


def replanned(plan: SignalPlan, providers: tuple[Provider, ...], interval: float) -> SignalPlan:
    """Return the plan after an edit, without a removed provider's answer and without rests."""
    held = plan.held if plan.held is not None and plan.held.provider in providers else None
    return replace(plan, providers=providers, interval_s=interval, held=held, failures={})


def checked_answer(answer: Answer, now: float) -> Answer:
    """Return an answer that has a value for now; raise ProviderFault for any other.

    A source's next value may be up to an hour late. Carbon values may be a day old at most; prices
    have no such limit, since they are made once a day.
    """
    if answer.end + LATE_S < now:
        hours = (now - answer.end) / 3_600
        raise ProviderFault(FaultReason.TOO_OLD, f"its last value ended {hours:.1f} h ago")
    made_at = answer.observed_at
    if made_at is not None and answer.unit == GRAMS_PER_KWH and made_at + _OLDEST_S < now:
        hours = (now - made_at) / 3_600
        raise ProviderFault(FaultReason.TOO_OLD, f"its source made the values {hours:.1f} h ago")
    if answer.at(now, LATE_S) is None:
        raise ProviderFault(FaultReason.NO_DATA, "no value for now")
    return answer


def serving(plan: SignalPlan, now: float) -> dict[str, Any]:
    """Return a plan's source and failures for a log line."""
    held = plan.good(now)
    return {
        "source": held.answer.source if held else None,
        "failures": {one.name: str(how.reason) for one, how in plan.failures.items()},
    }
