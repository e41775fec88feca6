"""The demo, start to end: two runs of one workload on one cluster, and both bills."""

import asyncio
import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from greensched_core import labels
from greensched_core.clock import WallClock
from greensched_core.kubernetes_api import ApiClient
from greensched_core.state import Node
from greensched_extender.settings import ExtenderSettings
from greensched_simulator.google_events import Machine
from greensched_simulator.synthetic import synthetic_trace
from greensched_simulator.synthetic_grid import Slot, synthetic_slots
from greensched_simulator.traces import TimeUnit, load_trace
from greensched_simulator.workload import Trace, as_pods, compressed, sampled
from greensched_testbed import replay
from greensched_testbed.binaries import KUBERNETES_VERSION
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.billing import Assumed, PlacedPod, bill_run
from greensched_testbed.demo.cluster import GreenSchedProcesses, ServedPolicy, publish_grid
from greensched_testbed.demo.nodes import believed_nodes
from greensched_testbed.demo.report import write_report
from greensched_testbed.demo.results import RunResult, summary
from greensched_testbed.demo.world import NODE_COUNT, ZONES, generations_by_node, node_groups
from greensched_testbed.nodes import create_nodes, wait_until_ready
from greensched_testbed.replay import Progress, Replay, ReplayOptions

WORKLOAD_SPAN_S = 6 * 3600.0
GRID_SPAN_S = 48 * 3600.0
_SETTLE_S = 30.0
OURS, DEFAULT = labels.SCHEDULER_NAME, "default-scheduler"


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What to run and where its results go."""

    output: Path
    pods: int = 300
    seed: int = 1
    wall_span_s: float = 40.0  # of one run's arrivals: two runs and the rest in about two minutes
    trace: Path | None = None
    time_unit: TimeUnit | None = None
    largest_machine: Machine | None = None
    skip_faulty: bool = False
    empty_nodes_sleep: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """How the demo tells what it is doing."""

    step: Callable[[str], None]
    progress: Callable[[str, Progress], None]


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """Both runs, where their page is, and what helps to look around."""

    ours: RunResult
    default: RunResult
    summary: Mapping[str, Any]
    report: Path
    a_pod: str  # one that GreenSched placed; "" if there is none
    workload_s_per_s: float  # seconds of the workload in a second of the run


def assumed(options: DemoOptions) -> Assumed:
    """Return what extender and bills assume: what GreenSched ships with, but for sleeping nodes."""
    shipped = ExtenderSettings.model_construct()
    return Assumed(
        shipped.utilisation_ratio, shipped.gpu_ratio, shipped.pue, options.empty_nodes_sleep
    )


def workload(options: DemoOptions) -> Trace:
    """Return the tasks of the demo, arrivals within six hours; raise BadInput for a bad file."""
    if options.trace is None:
        return synthetic_trace(options.pods, WORKLOAD_SPAN_S, options.seed)
    whole = load_trace(
        options.trace,
        time_unit=options.time_unit,
        largest_machine=options.largest_machine,
        skip_faulty=options.skip_faulty,
    )
    drawn = sampled(as_pods(whole), options.pods, options.seed)
    return compressed(_any_board(drawn), WORKLOAD_SPAN_S).trace


def _any_board(trace: Trace) -> Trace:
    """Leave out which GPU models the tasks name, and say so: the demo's nodes have others."""
    picky = sum(bool(task.gpu_models) for task in trace.tasks)
    if not picky:
        return trace
    tasks = tuple(replace(task, gpu_models=()) for task in trace.tasks)
    note = f"{picky} tasks name GPU models; the demo has others, any will do"
    return replace(trace, tasks=tasks, notes=(*trace.notes, note))


def run_demo(
    plane: ControlPlane, greensched: GreenSchedProcesses, options: DemoOptions, told: Told
) -> DemoOutcome:
    """Run the workload under GreenSched, then under the default profile, and bill both."""
    trace = workload(options)
    return asyncio.run(_run(plane, greensched, trace, options, told))


async def _run(
    plane: ControlPlane,
    greensched: GreenSchedProcesses,
    trace: Trace,
    options: DemoOptions,
    told: Told,
) -> DemoOutcome:
    factor = options.wall_span_s / WORKLOAD_SPAN_S
    squeezed = compressed(trace, options.wall_span_s).trace
    grid = {
        zone.name: synthetic_slots(zone, seed=options.seed, span_s=GRID_SPAN_S) for zone in ZONES
    }
    await asyncio.to_thread(greensched.install_chart)
    async with ApiClient(plane.access) as client:
        names = await create_nodes(client, node_groups())
        await wait_until_ready(client, names)
        nodes = await believed_nodes(client, names)
        await publish_grid(client, grid, starts_at=WallClock().now(), wall_s_per_workload_s=factor)
        await asyncio.to_thread(greensched.start)
        policy = await asyncio.to_thread(greensched.policy)
        told.step(f"{NODE_COUNT} nodes, the chart, the extender and a second scheduler are up")
        replays = {}
        for scheduler in (OURS, DEFAULT):
            await publish_grid(
                client, grid, starts_at=WallClock().now(), wall_s_per_workload_s=factor
            )
            replays[scheduler] = await _replayed(plane, scheduler, squeezed, told)
    for process in plane.processes.all():
        process.check()  # a bill without the extender would be no bill of GreenSched's
    window_s = max(_end_s(each, factor) for each in replays.values())
    generation_of = {name: each.name for name, each in generations_by_node().items()}
    runs = {
        scheduler: bill_run(
            scheduler, _placed(each, factor), nodes, generation_of, grid, window_s,
            greensched.assumed,
        )
        for scheduler, each in replays.items()
    }  # fmt: skip
    facts = _facts(trace, nodes, options, factor, policy)
    figures = {
        **_circumstances(trace, options, policy),
        **summary(runs[OURS], runs[DEFAULT]),
    }
    report = _written(runs[OURS], runs[DEFAULT], grid, options, facts, figures)
    a_pod = next((run.task.name for run in replays[OURS].runs if run.node), "")
    return DemoOutcome(runs[OURS], runs[DEFAULT], figures, report, a_pod, 1 / factor)


async def _replayed(plane: ControlPlane, scheduler: str, trace: Trace, told: Told) -> Replay:
    namespace = f"demo-{scheduler}"
    await asyncio.to_thread(plane.create_namespace, namespace)
    options = ReplayOptions(
        namespace=namespace, scheduler_name=scheduler, until="bound", settle_timeout_s=_SETTLE_S
    )
    record = await replay.replay(
        trace, plane.access, options, on_progress=lambda now: told.progress(scheduler, now)
    )
    for reason in replay.pending_reasons(record, scheduler):
        told.step(f"{scheduler} found no node for {reason}")
    if scheduler == OURS:  # the last run's pods stay, to look at with --keep
        await replay.delete_pods(plane.access, namespace)
    return record


def _placed(record: Replay, factor: float) -> list[PlacedPod]:
    return [
        PlacedPod(
            cpu_cores=run.task.cpu_cores,
            gpus=float(run.task.gpus),
            runtime_s=run.task.runtime_s / factor,
            node=run.node or None,
            bound_at_s=None
            if run.bound_at is None
            else max(0.0, run.bound_at - record.started_at) / factor,
            waited_s=None
            if run.bound_at is None or run.created_at is None
            else run.bound_at - run.created_at,
        )
        for run in record.runs
    ]


def _end_s(record: Replay, factor: float) -> float:
    """Return when the run's last pod ends, seconds of the workload, at most where the grid ends."""
    ends = [(pod.bound_at_s or 0.0) + pod.runtime_s for pod in _placed(record, factor) if pod.node]
    return min(max(ends, default=WORKLOAD_SPAN_S), GRID_SPAN_S)


def _facts(
    trace: Trace, nodes: Sequence[Node], options: DemoOptions, factor: float, policy: ServedPolicy
) -> Sequence[tuple[str, str]]:
    held = assumed(options)
    return [
        ("workload", f"{trace.source}, {len(trace.tasks)} pods within 6 h"),
        *(("", note) for note in trace.notes),
        *(("left out", str(fault)) for fault in trace.faults),
        ("runtime", "a pod runs equally long on every node, whatever its CPU or GPU"),
        ("clock", f"one second of the run is {1 / factor:.0f} s of the workload"),
        ("cluster", f"{len(nodes)} kwok nodes, Kubernetes {KUBERNETES_VERSION}"),
        ("repeat", "the default scheduler breaks ties at random: its bill differs from run to run"),
        ("grid", f"synthetic, seed {options.seed}; the forecast is exact"),
        ("policy", str(policy)),
        (
            "power",
            "simulated, by the nodes' curves; with the extender's defaults, "
            f"{held.utilisation_ratio:.0%} of requested CPU and {held.gpu_ratio:.0%} of a board's "
            f"range are used, PUE {held.pue}; "
            f"empty nodes {'sleep' if held.empty_nodes_sleep else 'stay on'}",
        ),
        ("machine", f"{platform.machine()}, Python {platform.python_version()}"),
        ("made", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())),
    ]


def _circumstances(trace: Trace, options: DemoOptions, policy: ServedPolicy) -> Mapping[str, Any]:
    """Return what the summary says of how its figures came about."""
    held = assumed(options)
    return {
        "simulated": True,
        "workload": trace.source,
        "seed": options.seed,
        "policy": policy.name,
        "policy_bundle": policy.bundle,
        "utilisation_ratio": held.utilisation_ratio,
        "gpu_ratio": held.gpu_ratio,
        "pue": held.pue,
        "empty_nodes_sleep": held.empty_nodes_sleep,
    }


def _written(
    ours: RunResult,
    default: RunResult,
    grid: Mapping[str, Sequence[Slot]],
    options: DemoOptions,
    facts: Sequence[tuple[str, str]],
    figures: Mapping[str, Any],
) -> Path:
    options.output.mkdir(parents=True, exist_ok=True)
    report = options.output / "report.html"
    shown = {
        zone: [slot for slot in slots if slot.start_s <= WORKLOAD_SPAN_S]
        for zone, slots in grid.items()
    }
    write_report(report, ours, default, shown, facts)
    (options.output / "summary.json").write_text(json.dumps(figures, indent=2) + "\n")
    return report
