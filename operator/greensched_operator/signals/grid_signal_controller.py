"""Fills GridSignals from their providers; only the leader runs it, so requests are not repeated."""

import asyncio
import math
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
import msgspec
import structlog

from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.static import load_static_zones
from greensched_core.signals.steps import AgeLimits, SignalKind
from greensched_core.signals.watched import GRID_SIGNALS_PATH, SignalObject, decode_signal
from greensched_core.watching import SharedSink, Sink, Watch, unread
from greensched_operator.providers.answers import ProviderFault
from greensched_operator.providers.catalogue import Provider
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.signals.metrics import GAP, LAST_GOOD, SignalMetrics
from greensched_operator.signals.plan import (
    SignalPlan,
    answered,
    checked_answer,
    failed,
    replanned,
    serving,
)
from greensched_operator.signals.provider_client import ProviderClient
from greensched_operator.signals.provider_secrets import ProviderSecrets
from greensched_operator.signals.spec import (
    KINDS,
    GridSignalObject,
    SignalSpec,
    decode_grid_signal,
    parse_spec,
)
from greensched_operator.signals.status import (
    handed_over,
    merge_patch,
    next_change,
    restored,
    status_of,
)
from greensched_operator.signals.web import Web

log = structlog.get_logger()

_ZONES_AT_A_TIME = 32
_AGAIN_S = 10.0  # after a status could not be written, or an unexpected exception
_LONGEST_WAIT_S = 60.0
_FIRST_WAIT_S = 0.5  # which measures the pace of the clock
_SHORTEST_WAIT_S = 0.1


@dataclass
class _Zone:
    """One GridSignal that we fill: its spec, plans and status."""

    spec: SignalSpec
    plans: dict[SignalKind, SignalPlan]
    status: dict[str, Any]  # as last received from the API server
    write_at: float = -math.inf  # when its status is due for a check; epoch seconds
    rests_until: float = -math.inf  # after an unexpected exception; epoch seconds
    followed: set[SignalKind] = field(default_factory=set)  # signals whose ages are shown


class GridSignalController:
    """Takes GridSignals from a watch, asks providers that are due, and writes statuses."""

    def __init__(
        self,
        api: ApiClient,
        clock: Clock,
        providers: ProviderClient,
        metrics: SignalMetrics,
        *,
        limits: AgeLimits | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """`chance` returns numbers in [0, 1), which spread the requests over time."""
        self._api = api
        self._clock = clock
        self._providers = providers
        self._metrics = metrics
        self._limits = limits or AgeLimits()
        self._chance = chance
        self._zones: dict[str, _Zone] = {}
        self._left: dict[str, dict[str, Any]] = {}  # patches of those without providers any more
        self._listed: set[str] = set()
        self._busy: set[str] = set()
        self._at_a_time = asyncio.Semaphore(_ZONES_AT_A_TIME)
        self._changed = asyncio.Event()
        self._has_listed = False

    def list_began(self) -> None:
        """Begin a full list."""
        self._listed = set()

    def upsert(self, item: GridSignalObject) -> None:
        """Take a GridSignal that exists or has changed.

        From one that names no providers any more, what we wrote of them is removed.
        """
        name = item.metadata.name
        self._listed.add(name)
        spec = parse_spec(item)
        if not spec.is_ours:
            self._forget(name)
            self._left[name] = handed_over(item.status or {})
            self._changed.set()
            return
        self._left.pop(name, None)
        known = self._zones.get(name)
        if known is not None:
            known.status = item.status or {}
            if known.spec == spec:
                return
        self._zones[name] = self._new(spec, item.status or {}, known)
        self._changed.set()

    def list_ended(self) -> None:
        """Forget all GridSignals that were not in the list."""
        for name in self._zones.keys() - self._listed:
            self._forget(name)
        self._has_listed = True
        self._changed.set()

    def remove(self, item: GridSignalObject) -> None:
        """Forget a GridSignal that was deleted."""
        self._forget(item.metadata.name)

    def _new(self, spec: SignalSpec, status: dict[str, Any], known: _Zone | None) -> _Zone:
        plans = {}
        for kind in KINDS:
            providers = spec.providers[kind]
            if known is not None:
                plans[kind] = replanned(known.plans[kind], providers, spec.interval_s)
                continue
            plan = SignalPlan(providers, spec.interval_s, limits=self._limits)
            now = self._clock.now()
            plans[kind] = restored(plan, kind, spec, status, now, self._chance())
        return _Zone(spec, plans, status, followed=known.followed if known else set())

    def _forget(self, name: str) -> None:
        gone = self._zones.pop(name, None)
        if gone is not None:
            self._metrics.forget(gone.spec.zone)

    async def run(self) -> None:
        """Update zones when they are due until cancelled, also by a clock faster than wall time.

        No zone waits for another zone with a slow provider.
        """
        pace, longest_s = 1.0, _FIRST_WAIT_S
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                self._start_due(tasks)
                wait_s = (self._next_at() - self._clock.now()) / pace
                began = self._clock.now(), self._clock.monotonic()
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(max(wait_s, _SHORTEST_WAIT_S), longest_s)):
                        await self._changed.wait()
                passed_s = self._clock.monotonic() - began[1]
                if passed_s >= _SHORTEST_WAIT_S:
                    pace = max((self._clock.now() - began[0]) / passed_s, 1.0)
                    longest_s = _LONGEST_WAIT_S

    async def turn(self) -> float:
        """Update all zones that are due; return when one is due next, in epoch seconds."""
        async with asyncio.TaskGroup() as tasks:
            self._start_due(tasks)
        return self._next_at()

    def _start_due(self, tasks: asyncio.TaskGroup) -> None:
        if not self._has_listed:
            return
        left, self._left = self._left, {}
        for name, patch in left.items():
            if patch:
                tasks.create_task(self._patch(name, patch))
        now = self._clock.now()
        for name, zone in self._zones.items():
            if name not in self._busy and _next_at(zone, now) <= now:
                self._busy.add(name)
                tasks.create_task(self._keep(name, zone))

    def _next_at(self) -> float:
        """Return when a zone that is not being updated is due next; infinity for never."""
        now = self._clock.now()
        idle = (zone for name, zone in self._zones.items() if name not in self._busy)
        return min((_next_at(zone, now) for zone in idle), default=math.inf)

    async def _keep(self, name: str, zone: _Zone) -> None:
        try:
            async with self._at_a_time:
                for kind in KINDS:
                    await self._ask(name, zone, kind)
                await self._write(name, zone)
        except Exception:  # a bug with one zone must not stop the others
            log.exception("a GridSignal could not be updated; trying again", signal=name)
            zone.rests_until = self._clock.now() + _AGAIN_S
        finally:
            self._busy.discard(name)
            self._changed.set()

    def _is_wanted(self, name: str, zone: _Zone) -> bool:
        """Return whether the zone has been neither edited nor deleted since its update began."""
        return self._zones.get(name) is zone

    async def _ask(self, name: str, zone: _Zone, kind: SignalKind) -> None:
        asked = False
        while self._is_wanted(name, zone):
            provider = zone.plans[kind].next_provider(self._clock.now())
            if provider is None:
                break
            asked = True
            zone.plans[kind] = await self._outcome(zone, kind, provider)
            zone.write_at = -math.inf
        if asked:
            self._report_fallback(zone, kind)

    async def _outcome(self, zone: _Zone, kind: SignalKind, provider: Provider) -> SignalPlan:
        plan = zone.plans[kind]
        try:
            answer = await self._providers.ask(provider, kind, zone.spec.zone)
            answer = checked_answer(answer, self._clock.now())
        except ProviderFault as fault:
            self._metrics.fetches.labels(provider.name, fault.reason).inc()
            return failed(plan, provider, fault, self._clock.now(), self._chance())
        self._metrics.fetches.labels(provider.name, "ok").inc()
        self._metrics.fallbacks.labels(kind, GAP).inc(answer.gaps())
        return answered(plan, provider, answer, self._clock.now(), self._chance())

    def _report_fallback(self, zone: _Zone, kind: SignalKind) -> None:
        """Count and log the source that serves now, if it is not the first provider."""
        plan = zone.plans[kind]
        first = plan.failures.get(plan.providers[0])
        if first is None:
            return
        reason = LAST_GOOD if plan.is_last_good() else first.reason
        self._metrics.fallbacks.labels(kind, reason).inc()
        log.warning(
            "a GridSignal falls back",
            signal=zone.spec.name,
            kind=kind,
            **serving(plan, self._clock.now()),
        )

    def _follow_ages(self, zone: _Zone) -> None:
        for kind, plan in zone.plans.items():
            if kind not in zone.followed and plan.held is not None:
                zone.followed.add(kind)
                self._metrics.follow_age(zone.spec.zone, kind, self._age_of(zone.spec.name, kind))

    def _age_of(self, name: str, kind: SignalKind) -> Callable[[], float]:
        def age_s() -> float:
            zone = self._zones.get(name)
            held = zone.plans[kind].held if zone is not None else None
            return math.nan if held is None else max(self._clock.now() - held.read_at, 0.0)

        return age_s

    async def _write(self, name: str, zone: _Zone) -> None:
        now = self._clock.now()
        if not self._is_wanted(name, zone) or zone.write_at > now:
            return
        self._follow_ages(zone)
        wanted = status_of(zone.spec, zone.plans, _conditions(zone.status), now)
        zone.write_at = next_change(zone.plans, now)
        patch = merge_patch(zone.status, wanted)
        if not patch:
            return
        written = await self._patch(name, patch)
        if written is None:
            zone.write_at = self._clock.now() + _AGAIN_S
        else:
            zone.status = written

    async def _patch(self, name: str, patch: dict[str, Any]) -> dict[str, Any] | None:
        """Patch a status; return the new one, or None if it was not taken."""
        body = msgspec.json.encode({"status": patch})
        try:
            raw = await self._api.patch(f"{GRID_SIGNALS_PATH}/{name}/status", body)
        except ApiUnavailable as fault:
            if fault.status != 404:  # deleted, which the watch will report
                self._metrics.write_failures.inc()
                log.warning(
                    "a GridSignal's status could not be written; trying again",
                    signal=name,
                    reason=str(fault),
                )
            return None
        return decode_grid_signal(raw).status or {}


def _conditions(status: dict[str, Any]) -> list[dict[str, Any]]:
    found = status.get("conditions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _next_at(zone: _Zone, now: float) -> float:
    due_at = min(zone.write_at, *(plan.due_at(now) for plan in zone.plans.values()))
    return max(due_at, zone.rests_until)


def make_grid_signal_controller(
    settings: OperatorSettings,
    api: ApiClient,
    clock: Clock,
    metrics: SignalMetrics,
    http: httpx.AsyncClient,
) -> GridSignalController:
    """Return the controller of all GridSignals with providers; one process at a time may run it.

    It is a sink for their watch. It sends requests over `http`, which the caller closes.
    """
    secrets, static = ProviderSecrets(api, settings.namespace), settings.static_zones_file
    providers = ProviderClient(
        Web(http, clock), secrets, clock, load_static_zones(static), settings.signal_files
    )
    return GridSignalController(api, clock, providers, metrics, limits=settings.age_limits)


def signal_watch(
    api: ApiClient, planning: Sink[SignalObject], controller: GridSignalController, wall: Clock
) -> Watch[bytes | msgspec.Raw]:
    """Return the one watch of GridSignals, for planning and for the controller that fills them."""
    sink = SharedSink[bytes | msgspec.Raw](
        (decode_signal, planning), (decode_grid_signal, controller)
    )
    return Watch(api, GRID_SIGNALS_PATH, unread, sink, wall)
