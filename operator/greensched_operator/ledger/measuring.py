"""Completes the record of an end by what meters saw of the run, beside all else that goes on.

Prometheus is asked some time after the end, since scrapes lag, and again where it did not answer.
What cannot be measured stays an estimate, and is counted with the reason.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import structlog

from greensched_core.clock import Clock
from greensched_core.errors import SignalUnavailable
from greensched_core.ledger_records import Amounts, LedgerRecord
from greensched_core.power.pod_energy import MeasuredPods, measured_pods
from greensched_core.power.prometheus import PrometheusApi, PrometheusUnreachable
from greensched_operator.ledger.pod_runs import Ran

log = structlog.get_logger()

_MOST_WAITING = 5_000  # workloads: a few hundred bytes each
_TRIES = (1.0, 3.0, 20.0)  # times `after_s`, since the end: by the last, what was down is up
_MOST_PODS = 1_000  # of one workload: 50 questions
_LOOK_EVERY_S = 1.0


class Unmeasured(StrEnum):
    """Why an end stays without measured energy."""

    QUEUE_FULL = "queue_full"  # more ended than could be asked about
    NO_RUN_SEEN = "no_run_seen"  # no pod of it was seen to run
    TOO_MANY_PODS = "too_many_pods"
    NO_METER = "no_meter"  # none saw nearly all of it
    UNREACHABLE = "unreachable"  # Prometheus did not answer, again and again
    REFUSED = "refused"  # it answered with a fault
    OTHER = "other"  # our own fault


Runs = Callable[[str], list[Ran]]
InAmounts = Callable[[MeasuredPods, Sequence[Ran]], Amounts]


@dataclass(frozen=True, slots=True)
class Counts:
    """How what became of an end is counted: measured, by which meter, or not, and why."""

    measured: Callable[[str], None]
    unmeasured: Callable[[Unmeasured], None]


@dataclass(frozen=True, slots=True)
class _Asking:
    """One workload that has ended, and when it is asked about."""

    record: LedgerRecord
    ended_at: float  # monotonic seconds
    pods: tuple[Ran, ...] = ()
    tries: int = 0


class Measuring:
    """Takes the records of ends at any time, and measures one after the other."""

    def __init__(
        self,
        prometheus: PrometheusApi,
        take_pods: Runs,
        in_amounts: InAmounts,
        write: Callable[[LedgerRecord], None],
        clock: Clock,
        counts: Counts,
        after_s: float = 90.0,
    ) -> None:
        """`take_pods` gives a workload's pods once; it asks `after_s` after an end at first."""
        self._after_s = after_s
        self._prometheus = prometheus
        self._take_pods = take_pods
        self._in_amounts = in_amounts
        self._write = write
        self._clock = clock
        self._count_measured = counts.measured
        self._count_unmeasured = counts.unmeasured
        self._waiting: deque[_Asking] = deque()

    def take(self, ended: LedgerRecord) -> None:
        """Take the record of an end; returns at once."""
        if len(self._waiting) >= _MOST_WAITING:
            self._take_pods(ended.subject.uid or "")
            self._count_unmeasured(Unmeasured.QUEUE_FULL)
            return
        self._waiting.append(_Asking(ended, self._clock.monotonic()))

    async def run(self) -> None:
        """Measure until cancelled."""
        while True:
            await self.measure_due()
            await asyncio.sleep(_LOOK_EVERY_S)

    async def measure_due(self) -> None:
        """Measure what is due now; stop at once where Prometheus cannot be reached."""
        for _ in range(len(self._waiting)):
            asking = self._waiting.popleft()
            if self._clock.monotonic() - asking.ended_at < _TRIES[asking.tries] * self._after_s:
                self._waiting.append(asking)
                continue
            if not asking.tries:
                pods = tuple(self._take_pods(asking.record.subject.uid or ""))
                asking = replace(asking, pods=pods)
            try:
                await self._measure(asking)
            except PrometheusUnreachable as fault:
                self._again(asking, Unmeasured.UNREACHABLE, str(fault))
                return
            except SignalUnavailable as fault:
                self._again(asking, Unmeasured.REFUSED, str(fault))
            except Exception:  # our own fault with one workload silences no other
                log.exception("not measured", work=asking.record.subject.name)
                self._count_unmeasured(Unmeasured.OTHER)

    async def _measure(self, asking: _Asking) -> None:
        record = asking.record
        runs = [run for pod in asking.pods if (run := pod.run) is not None]
        if not runs or len(runs) > _MOST_PODS:
            few_or_many = Unmeasured.TOO_MANY_PODS if runs else Unmeasured.NO_RUN_SEEN
            self._count_unmeasured(few_or_many)
            return
        with_gpus = bool(record.subject.gpus)
        found = await measured_pods(self._prometheus, runs, with_gpus=with_gpus)
        if found is None:
            self._again(
                asking, Unmeasured.NO_METER, "no meter has readings of nearly all of its run"
            )
            return
        took = self._in_amounts(found, asking.pods)
        self._write(replace(record, measured=took, meter=found.meter))
        self._count_measured(found.meter)

    def _again(self, asking: _Asking, reason: Unmeasured, text: str) -> None:
        """Ask again later, or count it as not measured."""
        if asking.tries + 1 < len(_TRIES):
            self._waiting.append(replace(asking, tries=asking.tries + 1))
            return
        self._count_unmeasured(reason)
        log.info("energy not measured", work=asking.record.subject.name, reason=text)
