"""Runs the demo's GreenSched processes and grid, and replays a workload on them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import msgspec

from greensched_core.clock import WallClock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.watching import Watch
from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_simulator.formats.workload import Trace
from greensched_testbed import replay
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.billing import BillAssumptions
from greensched_testbed.demo.cluster import GreenSchedProcesses, publish_grid
from greensched_testbed.demo.holding import HoldingLog, Marks, Pod
from greensched_testbed.demo.waiting import WAIT_S, clock_margin_s, zones_of_data
from greensched_testbed.operator_processes import (
    LEDGER_PORT,
    OPERATOR_NAMESPACE,
    FastClock,
    OperatorProcesses,
)
from greensched_testbed.replay import Replay, ReplayOptions, ReplayProgress

SlotsByZone = Mapping[str, Sequence[SyntheticSlot]]
_SETTLE_S = 30.0
_PUBLISH_EVERY_S = 3600.0  # of the workload; a signal is fresh for an hour and a half


@dataclass(frozen=True, slots=True)
class DemoProgress:
    """How the demo reports its progress."""

    step: Callable[[str], None]
    progress: Callable[[str, ReplayProgress], None]


@dataclass(frozen=True, slots=True)
class PlayedWorkload:
    """One run: its pods' outcomes, and the marks of those that were held."""

    record: Replay
    marks: Mapping[str, Marks]


class DemoStage:
    """GreenSched beside a control plane; extender and operator share an accelerated clock."""

    def __init__(
        self,
        plane: ControlPlane,
        client: ApiClient,
        assumed: BillAssumptions,
        rate: float,
        since_s: float,
        shows_s: float,
    ) -> None:
        """The clock shows `shows_s` at the wall time `since_s`, seconds since the epoch."""
        self.plane = plane
        self.client = client
        self.assumed = assumed
        self.rate = rate
        self.greensched = GreenSchedProcesses(plane, assumed)
        self._pace = FastClock(rate, since_s, shows_s)
        self._operator = OperatorProcesses(
            plane,
            self._pace,
            replan_every_s=_PUBLISH_EVERY_S,
            releaser_grace_s=rate,  # a real second, so that the controller acts first
        )

    def now(self) -> float:
        """Return the time on GreenSched's clock, in seconds since the epoch."""
        return self._pace.clock.now()

    def install(self) -> None:
        """Install the chart with a policy that holds work; kwok simulates the chart's pods."""
        to_ledger = self._operator.ledger_port("controller")
        self.plane.forward_pod_port(OPERATOR_NAMESPACE, LEDGER_PORT, to_ledger)
        values = {
            "operator.enabled": "true",
            "operator.webhook.url": self._operator.review_url(),
            "policy.mode": "enforce",
            "policy.spec.startDelay": f"{clock_margin_s(self.rate):.0f}s",
            "policy.spec.runtimeErrorPercent": "0",  # pods run as long as their annotation says
        }
        self.greensched.install_chart(
            *(part for name, value in values.items() for part in ("--set", f"{name}={value}"))
        )

    def start(self) -> None:
        """Start extender, second scheduler and operator, and wait until work is held."""
        self.greensched.start(self._pace.settings)
        self._operator.start_all()
        self._operator.wait_until_called("default")

    def continue_on_wall_clock(self) -> None:
        """Restart extender, second scheduler and operator on the wall clock."""
        self.greensched.stop()
        self._pace = FastClock()
        self._operator.restart(self._pace)
        self.greensched.start()

    async def publish(self, grid: SlotsByZone, starts_at: float) -> None:
        """Write the grid's current forecast, with its first slot at `starts_at`."""
        await publish_grid(
            self.client,
            grid,
            starts_at=starts_at,
            wall_s_per_workload_s=1.0,
            observed_at=self.now(),
        )

    @asynccontextmanager
    async def published(self, grid: SlotsByZone) -> AsyncIterator[float]:
        """Begin a workload now: publish its grid, now and each hour.

        Yields its start on GreenSched's clock.
        """
        starts_at = self.now()
        await self.publish(grid, starts_at)
        publishing = asyncio.create_task(self._keep_publishing(grid, starts_at))
        try:
            yield starts_at
        finally:
            publishing.cancel()
            await asyncio.gather(publishing, return_exceptions=True)

    async def _keep_publishing(self, grid: SlotsByZone, starts_at: float) -> None:
        while True:
            await asyncio.sleep(_PUBLISH_EVERY_S / self.rate)
            try:
                await self.publish(grid, starts_at)
            except ApiUnavailable:
                continue  # the last published values remain valid


async def played_workload(
    stage: DemoStage,
    trace: Trace,
    grid: SlotsByZone,
    name: str,
    scheduler: str,
    output: DemoProgress,
    *,
    holds: bool = False,
) -> PlayedWorkload:
    """Replay the workload in a new namespace; with `holds` its pods have their deadlines.

    With `holds` the pods also stay, for the user to look at.
    """
    namespace = f"demo-{name.replace(', ', '-').replace(' ', '-')}"
    await asyncio.to_thread(stage.plane.create_namespace, namespace)
    options = ReplayOptions(
        namespace=namespace,
        scheduler_name=scheduler,
        wall_s_per_trace_s=1.0 / stage.rate,
        until="bound",
        settle_timeout_s=_SETTLE_S + (WAIT_S / stage.rate if holds else 0.0),
        zone_of=zones_of_data(trace),
    )
    async with (
        stage.published(grid) as starts_at,
        _holding(stage, namespace, starts_at, output) as log,
    ):
        record = await replay.replay(
            trace,
            stage.plane.access,
            replace(options, has_deadlines=holds),
            on_progress=lambda now: output.progress(name, now),
        )
    for reason in replay.pending_reasons(record, scheduler):
        output.step(f"{name} found no node for {reason}")
    if not holds:
        await replay.delete_pods(stage.plane.access, namespace)
    return PlayedWorkload(record, log.marks)


@asynccontextmanager
async def _holding(
    stage: DemoStage, namespace: str, starts_at: float, output: DemoProgress
) -> AsyncIterator[HoldingLog]:
    """Watch the held pods of a namespace while the context is open."""
    log = HoldingLog(WallClock(), starts_at, lambda: stage.now() - starts_at, output.step)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    decode = msgspec.json.Decoder(Pod).decode
    watching = asyncio.create_task(Watch(stage.client, pods, decode, log, WallClock()).run())
    try:
        yield log
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
