"""The leader's energy measurement as a whole: runs of pods, history of the grid, and queries."""

import asyncio
from collections.abc import Callable, Sequence

import httpx
import structlog
from prometheus_client import CollectorRegistry

from greensched_core.clock import Clock, WallClock
from greensched_core.ledger_records import Amounts, LedgerRecord
from greensched_core.metering.pod_energy import MeasuredPods
from greensched_core.metering.prometheus import PrometheusApi
from greensched_core.signals.chain import GridSignals
from greensched_core.watching import Sink
from greensched_operator.ledger.grid_history import NOTED_EVERY_S, GridHistory, known_from
from greensched_operator.ledger.measured_amounts import measured_amounts
from greensched_operator.ledger.measuring import Counts, Measuring
from greensched_operator.ledger.metrics import MeasuringMetrics
from greensched_operator.ledger.pod_runs import PodRuns, RanPod
from greensched_operator.objects.placed_pods import PlacedPod
from greensched_operator.planning.cluster_state import ClusterNodes
from greensched_operator.runtime.settings import OperatorSettings

log = structlog.get_logger()


class EnergyService:
    """All parts of measuring, wired; without Prometheus nothing is measured."""

    def __init__(
        self,
        settings: OperatorSettings,
        nodes: ClusterNodes,
        signals: GridSignals,
        write: Callable[[LedgerRecord], None],
        registry: CollectorRegistry,
        clock: Clock,
    ) -> None:
        self._settings, self._nodes = settings, nodes
        self._history = GridHistory(known_from(signals), clock)
        self._runs: PodRuns | None = None
        self._http: httpx.AsyncClient | None = None
        self._measuring: Measuring | None = None
        metrics = MeasuringMetrics(registry)
        # Meters use wall seconds, which do not fit the times of a faster clock.
        if not settings.prometheus_url or settings.clock_rate != 1.0:
            return
        self._http = httpx.AsyncClient(trust_env=False)
        prometheus = PrometheusApi(
            self._http, settings.prometheus_url, timeout_s=settings.prometheus_timeout_s
        )
        self._measuring = Measuring(
            prometheus, self._take_pods, self._amounts, write, clock,
            Counts(metrics.count_measured, metrics.count_unmeasured), settings.measure_after_s,
        )  # fmt: skip

    def runs_before(
        self, inner: Sink[PlacedPod], pod_ended: Callable[[str, float | None, float], None]
    ) -> PodRuns:
        """Return the sink that records pods' runs and passes all on; `pod_ended` as in PodRuns."""
        schedulers = frozenset(self._settings.scheduler_names)
        self._runs = PodRuns(inner, schedulers, self._nodes.site_of, WallClock(), pod_ended)
        return self._runs

    def ended(self, record: LedgerRecord) -> None:
        """Queue the record of an end for measuring, if there is a meter; returns immediately."""
        if self._measuring is None:
            self._take_pods(record.subject.uid or "")
        else:
            self._measuring.take(record)

    async def run(self) -> None:
        """Record the grid's history and measure until cancelled."""
        if self._measuring is None or self._http is None:
            await asyncio.Event().wait()
            return
        async with self._http, asyncio.TaskGroup() as group:
            group.create_task(self._measuring.run())
            group.create_task(self._note())

    async def _note(self) -> None:
        while True:
            try:
                self._history.note(self._nodes.zone_names())
            except Exception:  # a bug of ours, which only affects the ledger
                log.exception("carbon and price could not be recorded for measured energy")
            await asyncio.sleep(NOTED_EVERY_S)

    def _take_pods(self, workload_uid: str) -> list[RanPod]:
        return self._runs.take(workload_uid) if self._runs else []

    def _amounts(self, measured: MeasuredPods, pods: Sequence[RanPod]) -> Amounts:
        return measured_amounts(
            measured.pieces, pods, self._settings.default_pue, self._history.mean
        )
