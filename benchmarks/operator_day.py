"""The day of `make bench-operator`: 500 Jobs, pods and CronJob runs on a real control plane.

Compares it with the simulator's result for the same day, and with running all work immediately.
"""

import asyncio
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks.audit import AUDIT_LOG, audit_flags, writes_of
from greensched_core import labels
from greensched_core.kubernetes_api import ApiClient
from greensched_policies.billing.accounting import bill_schedule
from greensched_policies.billing.timelines import Placements
from greensched_simulator.arrays.jobs import JobArrays
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
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import World, build_world
from greensched_testbed.components import (
    API_SERVER,
    ControlPlaneOptions,
    default_scheduler_config,
)
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.held_day.day import Day, ItemRun
from greensched_testbed.held_day.objects import node_groups_of
from greensched_testbed.held_day.replaying import create_signals, publish, replay_day
from greensched_testbed.held_day.watched_runs import late, placements_of
from greensched_testbed.nodes import create_nodes, wait_until_ready
from greensched_testbed.operator_processes import OPERATOR_NAMESPACE, FastClock, OperatorProcesses

SCENARIO = Path(__file__).with_name("operator-day.yaml")
POLICY = Path(__file__).with_name("operator-day-policy.yaml")  # the scenario names it too
JOBS = 500
LONGEST_S = 6 * 3600.0  # runtime; longer jobs would extend the replay far beyond its day
WORK = "day"
_OURS = f"system:serviceaccount:{OPERATOR_NAMESPACE}:"  # users
_OF_JOB = re.compile(r"[a-z-]+-(?P<place>\d+)\b")  # names of its pods and events too
# Nodes are chosen by the default scheduler's scores, on the cluster and in the simulator.
HELD, RUN_NOW = "green-policy+kubernetes-default", "run-now+kubernetes-default"


@dataclass(frozen=True)
class Measured:
    """The results of the day."""

    runs: list[ItemRun]
    late: int
    lost: int
    writes_per_job: float
    writes: Counter[int]  # by the job, or its pods or events
    core_hours_pct: float  # by which pods ran longer than the jobs, as watches saw them
    active_g: float
    simulated_active_g: float
    run_now_active_g: float
    release_errors_s: list[float]  # wall seconds

    def figures(self) -> dict[str, Any]:
        """Return the figures that the benchmark reports."""
        saved, simulated = (
            100.0 * (active_g / self.run_now_active_g - 1.0)
            for active_g in (self.active_g, self.simulated_active_g)
        )
        off = 100.0 * abs(self.active_g / self.simulated_active_g - 1.0)
        errors_s = self.release_errors_s or [float("nan")]
        return {
            "day_jobs": len(self.runs),
            "late_jobs": self.late,
            "lost_jobs": self.lost,
            "writes_per_job": self.writes_per_job,
            **self._writes_by_hold(),
            "core_hours_run_pct": self.core_hours_pct,
            "carbon_vs_run_now_pct": saved,
            "carbon_vs_run_now_simulated_pct": simulated,
            "parity_pct": max(off, abs(saved - simulated)),
            "release_error_p99_s": float(np.percentile(errors_s, 99)),
        }

    def _writes_by_hold(self) -> dict[str, Any]:
        """Return the mean writes of a job that was planned for later, and of one that was not."""
        held = [self.writes[run.place] for run in self.runs if run.planned_s is not None]
        started = [self.writes[run.place] for run in self.runs if run.planned_s is None]
        return {
            "held_jobs": len(held),
            "writes_per_held_job": sum(held) / max(len(held), 1),
            "writes_per_started_job": sum(started) / max(len(started), 1),
        }


def day_world(jobs: int, longest_s: float) -> World:
    """Return the scenario's world with its first `jobs` jobs of at most `longest_s` runtime."""
    world = build_world(load_scenario(SCENARIO))
    kept = np.flatnonzero(world.jobs.runtime_s <= longest_s)[:jobs]
    return world._replace(
        jobs=JobArrays._make(column[kept] for column in world.jobs),
        job_names=tuple(world.job_names[place] for place in kept),
    )


def expected(world: World) -> tuple[Schedule, Schedule]:
    """Return the simulator's schedules of the day, with and without holding."""
    return simulate(world, policy_named(HELD)), simulate(world, policy_named(RUN_NOW))


def measure(world: World, rate: float, say: Callable[[str], None]) -> Measured:
    """Replay the day `rate` times as fast, and bill it together with the simulator's runs."""
    held, at_once = expected(world)
    with (
        tempfile.TemporaryDirectory(prefix="greensched-audit-") as scratch,
        ControlPlane(_options(Path(scratch))) as plane,
    ):
        audit = Path(scratch) / AUDIT_LOG
        _start_scheduler(plane)
        plane.create_namespace(WORK)
        day, processes = asyncio.run(_set_up(plane, world, rate))
        say(f"{world.jobs.arrival_s.size} jobs, a day in {86_400 / rate / 60:.1f} minutes")
        runs = asyncio.run(replay_day(plane.access, day, on_progress=tenths(say)))
        metrics = processes.metrics("controller")
        say(", ".join(f"{key.split('{')[1][8:-2]} {value:.0f}" for key, value in metrics.items()
                      if key.startswith("greensched_operator_released_total")))  # fmt: skip
        writes, by_name = writes_of(audit, _OURS)
        say("written: " + ", ".join(f"{kind} {count}" for kind, count in writes.most_common()))
        for name in ("releaser", "webhook", "controller"):
            processes.stop(name)
    ended = [run for run in runs if run.ended_s is not None]
    until_s = max(billed_until_s(world, held, at_once), *(run.ended_s or 0.0 for run in runs))
    placed = placements_of(day, runs)
    asked_s = float(np.nansum(world.jobs.cpu_cores * (at_once.end_s - at_once.start_s)))
    bill = bill_schedule(
        billed_nodes_of(world), placed, zone_series(world), (0.0, until_s), cost_model(world)
    )
    return Measured(
        runs,
        late=len(list(late(day, runs))),
        lost=len(runs) - len(ended),
        writes_per_job=writes.total() / len(runs),
        writes=_by_job(by_name),
        core_hours_pct=100.0 * (_core_s(placed) / asked_s - 1.0),
        active_g=float(bill.carbon_active_g.sum()),
        simulated_active_g=float(bill_of(world, held, until_s).carbon_active_g.sum()),
        run_now_active_g=float(bill_of(world, at_once, until_s).carbon_active_g.sum()),
        release_errors_s=_release_errors(day, runs),
    )


def _by_job(names: Counter[str]) -> Counter[int]:
    """Return the writes of each of the world's jobs, by the names of its objects."""
    found: Counter[int] = Counter()
    for name, count in names.items():
        if said := _OF_JOB.match(name):
            found[int(said["place"])] += count
    return found


def _core_s(placed: Placements) -> float:
    return float(np.sum(placed.cpu_cores * (placed.end_s - placed.start_s)))


def _options(scratch: Path) -> ControlPlaneOptions:
    return ControlPlaneOptions(extra_flags={API_SERVER: audit_flags(scratch)})


def _start_scheduler(plane: ControlPlane) -> None:
    """Start a second scheduler with the default profile under our scheduler name."""
    config = yaml.safe_load(default_scheduler_config(plane.options))
    config["profiles"] = [{"schedulerName": labels.SCHEDULER_NAME}]
    config["leaderElection"] = {"leaderElect": False}
    plane.start_scheduler("greensched", yaml.safe_dump(config))


async def _set_up(plane: ControlPlane, world: World, rate: float) -> tuple[Day, OperatorProcesses]:
    async with ApiClient(plane.access) as client:
        kinds = load_scenario(SCENARIO).cluster.nodes
        names = await create_nodes(client, node_groups_of(world, kinds))
        await wait_until_ready(client, names)
        # The day begins 40 s from now, so that everything runs by then.
        pace = FastClock(rate, time.time() + 40.0, world.start_s)
        processes = OperatorProcesses(plane, pace)
        processes.install()
        day = Day(world, pace, WORK)
        await create_signals(client, day)
        plane.kubectl("apply", "-f", str(POLICY))
        processes.start_all()
        await publish(client, day)
    processes.wait_until_called(WORK)
    return day, processes


def tenths(say: Callable[[str], None]) -> Callable[[int, int], None]:
    """Return a function that says when another tenth of the jobs has ended."""
    last_tenth = [-1]

    def report(done: int, total: int) -> None:
        tenth = done * 10 // max(total, 1)
        if tenth > last_tenth[0]:
            last_tenth[0] = tenth
            say(f"{done} of {total} have ended")

    return report


def _release_errors(day: Day, runs: Sequence[ItemRun]) -> list[float]:
    """Return the wall seconds from each planned start until a watch saw the release."""
    return [
        (run.released_s - run.planned_s) / day.pace.rate
        for run in runs
        if run.release_reason == "planned-start" and run.released_s and run.planned_s
    ]
