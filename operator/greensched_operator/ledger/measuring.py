"""Adds a run's metered energy to the record of its end, in the background.

Prometheus is asked some time after the end, since scrapes lag, and again if it did not answer.
Energy that cannot be measured remains an estimate and is counted with the reason.
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
from greensched_core.metering.pod_energy import MeasuredPods, measured_pods
from greensched_core.metering.prometheus import PrometheusApi, PrometheusUnreachable
from greensched_operator.ledger.pod_runs import RanPod

log = structlog.get_logger()

_MOST_WAITING = 5_000  # workloads, of a few hundred bytes each
_TRIES = (1.0, 3.0, 20.0)  # times `after_s` after the end; by the last, an outage should be over
_MOST_PODS = 1_000  # of one workload: 50 queries
_LOOK_EVERY_S = 1.0


class Unmeasured(StrEnum):
    """Why the energy of a workload that ended was not measured."""

    QUEUE_FULL = "queue_full"  # more workloads ended than could be measured
    NO_RUN_SEEN = "no_run_seen"  # none of its pods was seen to run
    TOO_MANY_PODS = "too_many_pods"
    NO_METER = "no_meter"  # no meter has readings of nearly all of its run
    UNREACHABLE = "unreachable"  # Prometheus did not answer, also when asked again
    REFUSED = "refused"  # Prometheus answered with an error
    OTHER = "other"  # a bug of ours


FindRuns = Callable[[str], list[RanPod]]
InAmounts = Callable[[MeasuredPods, Sequence[RanPod]], Amounts]


@dataclass(frozen=True, slots=True)
class Counts:
    """Functions that count a workload as measured, by meter, or as not measured, by reason."""

    measured: Callable[[str], None]
    unmeasured: Callable[[Unmeasured], None]


@dataclass(frozen=True, slots=True)
class _Asking:
    """One workload that has ended, and how often its energy was asked for."""

    record: LedgerRecord
    ended_at: float  # monotonic seconds
    pods: tuple[RanPod, ...] = ()
    tries: int = 0


class Measuring:
    """Takes the records of ends at any time, and measures one workload after the other."""

    def __init__(
        self,
        prometheus: PrometheusApi,
        take_pods: FindRuns,
        in_amounts: InAmounts,
        write: Callable[[LedgerRecord], None],
        clock: Clock,
        counts: Counts,
        after_s: float = 90.0,
    ) -> None:
        """`take_pods` returns a workload's pods once; the first query is `after_s` after an end."""
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
        """Take the record of an end; returns immediately."""
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
        """Measure what is due now; stop if Prometheus cannot be reached."""
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
            except Exception:  # a bug with one workload must not affect the others
                log.exception(
                    "energy not measured; the estimate remains", work=asking.record.subject.name
                )
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
        """Queue another query, or count the workload as not measured after the last one."""
        if asking.tries + 1 < len(_TRIES):
            self._waiting.append(replace(asking, tries=asking.tries + 1))
            return
        self._count_unmeasured(reason)
        log.info(
            "energy not measured; the estimate remains",
            work=asking.record.subject.name,
            reason=text,
        )
