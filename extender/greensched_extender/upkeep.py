"""Background tasks: measuring, reloading, expiring; each runs until cancelled."""

import asyncio
import gc
from collections.abc import Iterator, Mapping
from itertools import islice

import structlog

from greensched_core.clock import Clock
from greensched_core.errors import SignalUnavailable
from greensched_core.metering.measured import PowerReader
from greensched_core.signals.readings import Reading
from greensched_extender.gauges import WatchesHealth
from greensched_extender.metrics import ExtenderMetrics
from greensched_extender.policy_choice import PolicyChoice
from greensched_extender.snapshot import Snapshot

log = structlog.get_logger()

_KEPT_HEAP_BYTES = 31 << 20  # just below the largest threshold, mallopt(3)'s M_MMAP_THRESHOLD

_BUNDLE_EVERY_S = 5.0  # the kubelet takes up to a minute to renew a mounted ConfigMap
_EXPIRE_EVERY_S = 1.0
_CONVERTED_AT_ONCE = 250  # nodes, from watts to utilisation: below 1 ms
_MEASURED_FOR = 4  # intervals without an answer until measured values are dropped


async def keep_measured(
    reader: PowerReader,
    snapshot: Snapshot,
    metrics: ExtenderMetrics,
    clock: Clock,
    *,
    interval_s: float,
) -> None:
    """Read Prometheus every `interval_s`; drop old values after four intervals without answers."""
    answered_at = clock.monotonic()
    logged: tuple[str, ...] = ()
    while True:
        faults: tuple[str, ...]
        try:
            faults = await _measure(reader, snapshot, clock.now())
            metrics.prometheus_failures.inc(len(faults))
            answered_at = clock.monotonic()
        except SignalUnavailable as fault:
            metrics.prometheus_failures.inc()
            faults = (str(fault),)
        except Exception as fault:
            metrics.task_failures.labels("prometheus").inc()
            log.error("measured values could not be used", exc_info=fault)
            faults = ()
        if faults and faults != logged:
            log.warning("Prometheus did not answer all queries", reasons=faults)
        logged = faults
        if clock.monotonic() - answered_at > _MEASURED_FOR * interval_s:
            snapshot.measure({}, {}, {})
        await asyncio.sleep(interval_s)


async def _measure(reader: PowerReader, snapshot: Snapshot, now: float) -> tuple[str, ...]:
    """Read measured values into the snapshot; return the queries without an answer, and why."""
    measured = await reader.read(now)
    by_watts: dict[str, Reading] = {}
    for piece in _pieces(measured.watts):
        by_watts |= snapshot.utilisation_by_watts(piece)
        await asyncio.sleep(0)  # let requests run in between
    utilisation = by_watts | dict(measured.utilisation)
    snapshot.measure(utilisation, measured.watts, measured.gpu_watts)
    return measured.faults


def _pieces(watts: Mapping[str, Reading]) -> Iterator[list[tuple[str, Reading]]]:
    waiting = iter(watts.items())
    while piece := list(islice(waiting, _CONVERTED_AT_ONCE)):
        yield piece


async def keep_bundle(
    choice: PolicyChoice, metrics: ExtenderMetrics, *, every_s: float = _BUNDLE_EVERY_S
) -> None:
    """Load a new bundle when its card changes."""
    while True:
        await asyncio.sleep(every_s)
        try:
            await asyncio.to_thread(choice.reload)
        except Exception as fault:
            metrics.task_failures.labels("bundle").inc()
            log.error("the bundle could not be checked for changes", exc_info=fault)


async def keep_provisional(snapshot: Snapshot, *, every_s: float = _EXPIRE_EVERY_S) -> None:
    """Drop expired provisional pods, also while no requests come."""
    while True:
        await asyncio.sleep(every_s)
        snapshot.expire()


async def settle_memory(watches: WatchesHealth) -> None:
    """After the first lists, exempt existing objects from garbage collection, then end.

    A full collection over a large cluster's objects would stop a request for tens of milliseconds.
    """
    while watches.missing():
        await asyncio.sleep(0.05)
    # glibc raises its thresholds to the size of a freed block. Without this it returns the
    # arrays' pages after each request and faults them in again: 0.3 ms at 5,000 nodes.
    bytearray(_KEPT_HEAP_BYTES)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 1_000)
    log.info("ready: first lists are done")
