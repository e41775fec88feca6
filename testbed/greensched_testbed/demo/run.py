"""Runs the demo: three runs of one workload on one cluster, and their bills."""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from greensched_core import labels
from greensched_core.api_paths import NODES
from greensched_core.kubernetes_api import ApiClient
from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.state import Node
from greensched_extender.settings import ExtenderSettings
from greensched_simulator.formats.synthetic import synthetic_trace
from greensched_simulator.formats.synthetic_grid import synthetic_slots
from greensched_simulator.formats.trace_format import TraceOptions
from greensched_simulator.formats.traces import load_trace
from greensched_simulator.formats.workload import Trace, as_pods, compressed, sampled
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.billing import BillAssumptions, BilledPod, bill_run
from greensched_testbed.demo.facts import Circumstances, circumstances, write_demo_results
from greensched_testbed.demo.holding import Marks, holding_of
from greensched_testbed.demo.look_around import HELD_JOB, continue_on_wall_clock
from greensched_testbed.demo.play import (
    DemoProgress,
    DemoStage,
    PlayedWorkload,
    SlotsByZone,
    played_workload,
)
from greensched_testbed.demo.results import DemoResult, ThreeRuns, demo_summary
from greensched_testbed.demo.waiting import with_deadlines
from greensched_testbed.demo.world import (
    DEMO_ZONES,
    NODE_COUNT,
    demo_node_groups,
    generations_by_node,
)
from greensched_testbed.nodes import create_nodes, wait_until_ready
from greensched_testbed.replay import Replay, ReplayedPod

WORKLOAD_SPAN_S = 6 * 3600.0
GRID_SPAN_S = 48 * 3600.0
OURS, AT_ONCE, DEFAULT = labels.SCHEDULER_NAME, "greensched, at once", "default-scheduler"
_decode_node = msgspec.json.Decoder(NodeObject).decode
_DAYS_AGO = 10  # start of the runs' clock: the ledger accepts no future times


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What to run, and where to write its results."""

    output: Path
    pods: int = 300
    seed: int = 1
    wall_span_s: float = 30.0  # of one run's arrivals: the demo then takes two minutes
    trace: Path | None = None
    trace_options: TraceOptions = field(default_factory=dict)
    skip_faulty: bool = False
    empty_nodes_sleep: bool = False


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """The runs' results, their page, and objects to look at."""

    results: ThreeRuns
    summary: Mapping[str, Any]
    report: Path
    a_pod: str = ""  # placed by GreenSched, namespace/name; "" unless the demo goes on
    a_held_job: str = ""  # namespace/name, likewise


def assumed(options: DemoOptions) -> BillAssumptions:
    """Return the assumptions of extender and bills: the defaults, except for sleeping nodes."""
    shipped = ExtenderSettings.model_construct()
    return BillAssumptions(
        shipped.utilisation_ratio, shipped.gpu_ratio, shipped.default_pue, options.empty_nodes_sleep
    )


def workload(options: DemoOptions) -> Trace:
    """Return the demo's tasks, which arrive within six hours; raise BadInput for a bad file."""
    return with_deadlines(_tasks(options), WORKLOAD_SPAN_S / options.wall_span_s)


def _tasks(options: DemoOptions) -> Trace:
    if options.trace is None:
        whole = synthetic_trace(options.pods, WORKLOAD_SPAN_S, options.seed)
        return replace(compressed(whole, WORKLOAD_SPAN_S).trace, notes=whole.notes)
    whole = load_trace(options.trace, options.trace_options, skip_faulty=options.skip_faulty)
    drawn = sampled(as_pods(whole), options.pods, options.seed)
    return compressed(_any_gpu(drawn), WORKLOAD_SPAN_S).trace


def _any_gpu(trace: Trace) -> Trace:
    """Drop the tasks' GPU models, and note it: the demo's nodes have other models."""
    picky = sum(bool(task.gpu_models) for task in trace.tasks)
    if not picky:
        return trace
    tasks = tuple(replace(task, gpu_models=()) for task in trace.tasks)
    note = f"{picky} tasks name GPU models that the demo lacks; they run on any GPU"
    return replace(trace, tasks=tasks, notes=(*trace.notes, note))


def run_demo(
    plane: ControlPlane, options: DemoOptions, output: DemoProgress, *, goes_on: bool = False
) -> DemoOutcome:
    """Run the workload by default, placed by GreenSched, and also held by it; bill all three.

    With `goes_on`, GreenSched then continues on the wall clock, with a pod and a held Job.
    """
    return asyncio.run(_run(plane, options, output, goes_on))


async def _run(
    plane: ControlPlane, options: DemoOptions, output: DemoProgress, goes_on: bool
) -> DemoOutcome:
    trace, rate = workload(options), WORKLOAD_SPAN_S / options.wall_span_s
    grid: SlotsByZone = {
        zone.name: synthetic_slots(zone, seed=options.seed, span_s=GRID_SPAN_S)
        for zone in DEMO_ZONES
    }
    async with ApiClient(plane.access) as client:
        stage = DemoStage(plane, client, assumed(options), rate, time.time(), _begin_s())
        await asyncio.to_thread(stage.install)
        names = await create_nodes(client, demo_node_groups())
        await wait_until_ready(client, names)
        nodes = await _believed_nodes(client, names)
        await stage.publish(grid, stage.now())
        await asyncio.to_thread(stage.start)
        policy = await asyncio.to_thread(stage.greensched.policy)
        output.step(
            f"{NODE_COUNT} nodes, the chart, the extender with a second scheduler, and the "
            "operator (controller, webhook, releaser) are up"
        )
        runs = {
            DEFAULT: await played_workload(stage, trace, grid, DEFAULT, DEFAULT, output),
            AT_ONCE: await played_workload(stage, trace, grid, AT_ONCE, OURS, output),
            OURS: await played_workload(stage, trace, grid, OURS, OURS, output, holds=True),
        }
        for process in plane.processes.all():
            process.check()  # without the extender the bill would not be GreenSched's
        outcome = _billed(runs, stage, nodes, grid)
        how = Circumstances(trace, options.seed, rate, len(nodes), policy, stage.assumed)
        figures = {**circumstances(how), **demo_summary(outcome)}
        report = write_demo_results(options.output, outcome, grid, how, figures)
        if not goes_on:
            return DemoOutcome(outcome, figures, report)
        a_pod = await continue_on_wall_clock(stage, grid)
        return DemoOutcome(outcome, figures, report, a_pod, HELD_JOB)


def _begin_s() -> float:
    """Return the start of the runs' clock: 06:00 UTC some days ago, as in the synthetic grids."""
    midnight = time.time() // 86_400.0 * 86_400.0
    return midnight - _DAYS_AGO * 86_400.0 + 6 * 3600.0


def _billed(
    runs: Mapping[str, PlayedWorkload], stage: DemoStage, nodes: Sequence[Node], grid: SlotsByZone
) -> ThreeRuns:
    factor = 1.0 / stage.rate
    window_s = max(_end_s(each.record, factor) for each in runs.values())
    generation_of = {name: each.name for name, each in generations_by_node().items()}

    def billed(name: str) -> DemoResult:
        return bill_run(
            name, _placed(runs[name], factor), nodes, generation_of, grid, window_s, stage.assumed
        )

    zone_of = {node.name: node.zone for node in nodes}
    holding = holding_of(runs[OURS].record, runs[OURS].marks, zone_of, grid, factor)
    return ThreeRuns(billed(DEFAULT), billed(AT_ONCE), billed(OURS), holding)


def _placed(run: PlayedWorkload, factor: float) -> list[BilledPod]:
    return [
        BilledPod(
            cpu_cores=each.task.cpu_cores,
            gpus=float(each.task.gpus),
            runtime_s=each.task.runtime_s,
            node=each.node or None,
            bound_at_s=None
            if each.bound_at is None
            else max(0.0, each.bound_at - run.record.started_at) / factor,
            waited_s=_waited_s(each, run.marks.get(each.task.name)),
        )
        for each in run.record.runs
    ]


def _waited_s(run: ReplayedPod, marks: Marks | None) -> float | None:
    """Return the real seconds for which a pod waited for its scheduler, without its hold."""
    since = run.created_at if marks is None else marks.released_wall_s
    if run.bound_at is None or since is None:
        return None
    return max(0.0, run.bound_at - since)


def _end_s(record: Replay, factor: float) -> float:
    """Return when the last pod ends, at most the grid's end, in seconds of the workload."""
    ends = [
        (each.bound_at - record.started_at) / factor + each.task.runtime_s
        for each in record.runs
        if each.bound_at is not None
    ]
    return min(max(ends, default=WORKLOAD_SPAN_S), GRID_SPAN_S)


async def _believed_nodes(client: ApiClient, names: Collection[str]) -> list[Node]:
    """Return nodes as the extender reads them, so that the bill and the decisions agree."""
    reader = NodeReader(PowerCatalogue(), {})
    nodes = []
    async for page in client.pages(NODES):
        for raw in page.items:
            node, _ = reader.read(_decode_node(raw))
            if node.name in names:
                nodes.append(node)
    return nodes
