"""A day on a real control plane with extender and operator, and the same day in the simulator."""

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.operator_day import tenths
from greensched_core.api_paths import NODES
from greensched_core.errors import BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_policies.billing.accounting import Bill, bill_schedule
from greensched_policies.costs.cost import CURVE_POINTS
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.run_inputs import cost_model
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import (
    bill_of,
    billed_nodes_of,
    billed_until_s,
    simulate,
    zone_series,
)
from greensched_simulator.scenario.file import read_document
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.world.scenario_loading import parse_scenario
from greensched_simulator.world.world import World
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.billing import BillAssumptions
from greensched_testbed.demo.cluster import GreenSchedProcesses
from greensched_testbed.held_day.day import Day, ItemRun
from greensched_testbed.held_day.objects import node_groups_of
from greensched_testbed.held_day.replaying import create_signals, publish, replay_day
from greensched_testbed.held_day.watched_runs import node_row, placements_of
from greensched_testbed.nodes import create_nodes, wait_until_ready
from greensched_testbed.operator_processes import FastClock, OperatorProcesses

SCENARIO = Path(__file__).with_name("parity-day.yaml")
HELD, RUN_NOW = "green-policy+weighted-cost", "run-now+weighted-cost"
WORK = "day"
_LEAD_S = 60.0  # wall seconds until the day begins, when everything runs
_DEFAULT_PUE = 1.0  # every node of the day has a PUE of its own


@dataclass(frozen=True)
class PlayedDay:
    """A day's runs on the cluster, the simulator's of the same day, and the bills of all three."""

    day: Day
    runs: list[ItemRun]
    simulated: Schedule
    bill: Bill
    simulated_bill: Bill
    run_now_bill: Bill


def day_content(jobs: int, *, has_exact_forecasts: bool) -> dict[str, Any]:
    """Return the day's scenario file with so many jobs, with errors of its forecasts or without."""
    content = read_document(SCENARIO).content
    content["workload"]["generator"]["jobs"] = jobs
    if has_exact_forecasts:
        for grid in content["grids"].values():
            del grid["forecast_error"]
    return content


def scenario_of(content: dict[str, Any]) -> Scenario:
    """Return the scenario of a file's content."""
    return parse_scenario(content, SCENARIO.parent, os.environ)


def played(
    scenario: Scenario, world: World, policy: Path, rate: float, say: Callable[[str], None]
) -> PlayedDay:
    """Play the day `rate` times as fast under a GreenPolicy's manifest, and bill it."""
    held, at_once = (simulate(world, policy_named(name)) for name in (HELD, RUN_NOW))
    with ControlPlane() as plane:
        plane.create_namespace(WORK)
        day = asyncio.run(_set_up(plane, scenario, world, policy, rate))
        jobs = world.jobs.arrival_s.size
        say(f"{jobs} jobs, a day in {86_400 / rate / 60:.1f} minutes")
        runs = asyncio.run(replay_day(plane.access, day, on_progress=tenths(say)))
        for process in plane.processes.all():
            process.check()  # without the extender it would not be GreenSched's day
    ends_s = (run.ended_s or 0.0 for run in runs)
    until_s = max(billed_until_s(world, held, at_once), *ends_s)
    bill = bill_schedule(
        billed_nodes_of(world), placements_of(day, runs), zone_series(world), (0.0, until_s),
        cost_model(world),
    )  # fmt: skip
    simulated, run_now = (bill_of(world, each, until_s) for each in (held, at_once))
    return PlayedDay(day, runs, held, bill, simulated, run_now)


async def _set_up(
    plane: ControlPlane, scenario: Scenario, world: World, policy: Path, rate: float
) -> Day:
    assumed = BillAssumptions(
        world.utilisation_ratio, world.gpu_ratio, _DEFAULT_PUE, world.empty_nodes_sleep
    )
    async with ApiClient(plane.access) as client:
        names = await create_nodes(client, node_groups_of(world, scenario.cluster.nodes))
        await wait_until_ready(client, names)
        pace = FastClock(rate, time.time() + _LEAD_S, world.start_s)
        day = Day(world, pace, WORK)
        await _refuse_other_nodes(client, day)
        greensched, operator = GreenSchedProcesses(plane, assumed), OperatorProcesses(plane, pace)
        await asyncio.to_thread(_install, greensched, operator)
        await create_signals(client, day)
        plane.kubectl("apply", "-f", str(policy))
        await publish(client, day)
        await asyncio.to_thread(greensched.start, pace.settings)
        await asyncio.to_thread(operator.start_all)
    await asyncio.to_thread(operator.wait_until_called, WORK)
    return day


def _install(greensched: GreenSchedProcesses, operator: OperatorProcesses) -> None:
    """Install the chart without pods: they would take room on the day's nodes."""
    parts = ("extender", "scheduler", "operator.controller", "operator.webhook")
    values = [f"{part}.replicas=0" for part in (*parts, "operator.releaser")]
    values += ["operator.enabled=true", f"operator.webhook.url={operator.review_url()}"]
    greensched.install_chart(*(word for value in values for word in ("--set", value)))


async def _refuse_other_nodes(client: ApiClient, day: Day) -> None:
    """Raise BadInput if GreenSched would read another node than the simulator has."""
    world, reader = day.world, NodeReader(PowerCatalogue(), {})
    decode = msgspec.json.Decoder(NodeObject).decode
    curves = world.curve_watts.reshape(-1, CURVE_POINTS)
    async for page in client.pages(NODES):
        for item in page.items:
            read, faults = reader.read(decode(item))
            row = node_row(day, read.name)
            nodes, gpu = world.nodes, read.gpu
            found = (read.speed, read.pue, *((gpu.idle_w, gpu.peak_w) if gpu else (0.0, 0.0)))
            gpu_w = (nodes.gpu_idle_w[row], nodes.gpu_peak_w[row]) if gpu else (0.0, 0.0)
            wanted = (nodes.speed[row], nodes.pue[row], *gpu_w)
            watts = curves[int(nodes.curve_class[row])]
            if faults or not (
                np.allclose(np.array(found, float), wanted)
                and np.allclose(read.curve.watts, watts, atol=1e-3)
            ):
                raise BadInput(f"{read.name}: {found} on the cluster, {wanted} simulated; {faults}")
