"""A day in a minute with the operator's processes, on a control plane for each module.

After each day, nothing may be lost, nothing late beyond the stated bound, nothing held for ever.
"""

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import yaml

from greensched_core import labels
from greensched_core.kubernetes_api import ApiClient
from greensched_simulator.testing.small_worlds import make_world
from greensched_simulator.world.world import World
from greensched_testbed.components import default_scheduler_config
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.held_day.day import Day, ItemRun
from greensched_testbed.held_day.objects import node_groups_of
from greensched_testbed.held_day.replaying import create_signals, publish, replay_day
from greensched_testbed.nodes import create_nodes, wait_until_ready
from greensched_testbed.operator_processes import FastClock, OperatorProcesses
from greensched_testbed.processes import tail

RATE = 1440.0  # a day in a minute
HOUR_S = 3600.0
WORK = "day"
LATE_S = 1.0  # real seconds past a deadline
LATE_AFTER_LOSS_S = 60.0  # the same, after an outage of the API server or of all our processes
_LEAD_S = 14.0  # real seconds until the day begins, when everything is running
_SETTINGS = {"replan_every_s": 3600.0, "lease_duration_s": 3.0, "release_jitter_s": 120.0}
_POLICY = {
    "apiVersion": f"{labels.GROUP}/{labels.VERSION}",
    "kind": "GreenPolicy",
    "metadata": {"name": "default", "namespace": WORK},
    # At this rate an hour is two and a half seconds, which pods take to start and be seen to end.
    "spec": {"mode": "enforce", "startDelay": "1h", "runtimeErrorPercent": 0,
             "weights": {"cost": 0, "carbon": 1, "performance": 0}},
}  # fmt: skip


def dirty_and_clean(jobs: int = 80, seed: int = 7) -> World:
    """Return a world whose grid is clean for two hours in six, with jobs that may wait for it."""
    dice = np.random.default_rng(seed)
    arrivals_s = np.sort(dice.uniform(0.2, 13.0, jobs)) * HOUR_S
    rows = []
    for arrival_s in arrivals_s:
        runtime_s, slack_s = (
            dice.uniform(low, high) * HOUR_S for low, high in ((0.5, 1.5), (4, 9))
        )
        deadline_s = arrival_s + runtime_s + slack_s
        rows.append({"arrival_s": arrival_s, "runtime_s": runtime_s, "deadline_s": deadline_s,
                     "cpu_cores": float(dice.integers(1, 4))})  # fmt: skip
    grid = [(hour * HOUR_S, 120.0 if hour % 6 in (4, 5) else 480.0, 50.0) for hour in range(96)]
    nodes = [{"cpu_capacity": 64.0, "memory_capacity": 2.0**38} for _ in range(4)]
    return make_world(rows, nodes, [grid], length_s=24 * HOUR_S)


Fault = Callable[["Stage"], Awaitable[None]]


@dataclass
class Stage:
    """A cluster, the operator's processes, and the day that is about to begin."""

    plane: ControlPlane
    processes: OperatorProcesses
    day: Day

    async def at(self, hours: float) -> None:
        """Wait until this many hours of the day have passed."""
        await asyncio.sleep(max(0.0, (hours * HOUR_S - self.day.now_s()) / RATE))

    async def until(self, happened: Callable[[], bool], *, within_hours: float = 6.0) -> None:
        """Wait until something has happened; fail after `within_hours` of the day."""
        async with asyncio.timeout(within_hours * HOUR_S / RATE):
            while not happened():
                await asyncio.sleep(0.05)

    async def start(self, kind: str, name: str = "", **settings: str) -> None:
        """Start one of the operator's processes, with further settings."""
        await asyncio.to_thread(self.processes.start, kind, name, settings)

    async def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what kubectl prints as administrator."""

        def call() -> str:
            return self.plane.kubectl(*arguments, stdin=stdin)

        return await asyncio.to_thread(call)

    def live(self, *faults: Fault, publish_every_s: float = HOUR_S) -> list[ItemRun]:
        """Run the day with faults in it, and return the runs of its work."""

        async def live() -> list[ItemRun]:
            async with asyncio.TaskGroup() as group:
                replay = group.create_task(
                    replay_day(
                        self.plane.access,
                        self.day,
                        publish_every_s=publish_every_s,
                        patience_s=60.0,
                    )
                )
                for fault in faults:
                    group.create_task(_of(fault(self)))
            return replay.result()

        return asyncio.run(live())

    def items(self, kind: str) -> list[dict[str, Any]]:
        """Return all Jobs or pods of the day's namespace."""
        output = self.plane.kubectl("get", kind, "-n", WORK, "-o", "json")
        found: list[dict[str, Any]] = json.loads(output)["items"]
        return found

    def held(self) -> list[str]:
        """Return the names of work that we still hold."""
        jobs = [
            each for each in self.items("jobs") if each["spec"].get("suspend") and is_ours(each)
        ]
        pods = [each for each in self.items("pods") if gates(each)]
        return [each["metadata"]["name"] for each in (*jobs, *pods)]

    def ever_held(self) -> set[str]:
        """Return the names of work that we hold or held."""
        items = (*self.items("jobs"), *self.items("pods"))
        return {
            each["metadata"]["name"] for each in items if labels.HELD_AT in annotations_of(each)
        }

    def reasons(self) -> Mapping[str, int]:
        """Return the number of releases by the reason in their annotations."""
        found: dict[str, int] = {}
        for each in (*self.items("jobs"), *self.items("pods")):
            reason = annotations_of(each).get(labels.RELEASE_REASON)
            if reason:
                found[reason] = found.get(reason, 0) + 1
        return found

    def assert_promise_kept(
        self, runs: Sequence[ItemRun], *, grace_s: float = LATE_S, log: str = "controller"
    ) -> None:
        """Assert that nothing is lost, late or held."""
        lost = [f"{run.kind}-{run.place}" for run in runs if run.ended_s is None]
        assert lost == [], self.log(log)
        late = {f"{run.kind}-{run.place}": lateness_s(self.day, run) for run in runs}
        assert {name: by_s for name, by_s in late.items() if by_s > grace_s} == {}, self.log(log)
        assert self.held() == []

    def log(self, name: str) -> str:
        """Return the last log lines of one of the operator's processes."""
        return tail(self.plane.folder / "logs" / f"operator-{name}.log", 40)


async def _of(awaitable: Awaitable[None]) -> None:
    await awaitable


def annotations_of(item: Mapping[str, Any]) -> dict[str, str]:
    """Return a Job's or pod's annotations of greensched.io/."""
    found = item["metadata"].get("annotations", {})
    return {name: text for name, text in found.items() if name.startswith(labels.GROUP)}


def is_ours(item: Mapping[str, Any]) -> bool:
    """Return whether a Job's annotations say that we hold it and have not released it."""
    marks = annotations_of(item)
    was_held = labels.HELD_AT in marks and labels.RELEASED_AT not in marks
    return labels.LATEST_START in marks or was_held


def gates(item: Mapping[str, Any]) -> list[str]:
    """Return our gates of a pod."""
    names = [each["name"] for each in item["spec"].get("schedulingGates", ())]
    return [name for name in names if name == labels.GATE]


def lateness_s(day: Day, run: ItemRun) -> float:
    """Return by how many real seconds a run missed its deadline; negative if it was in time.

    A duration counts from the creation, which is later than the arrival while servers are down.
    """
    jobs = day.world.jobs
    slack_s = float(jobs.deadline_s[run.place] - jobs.arrival_s[run.place])
    assert run.created_s is not None and run.ended_s is not None
    return (run.ended_s - run.created_s - slack_s) / RATE


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """Run a control plane for this module, with a scheduler of our name."""
    if "GREENSCHED_KUBECONFIG" in os.environ:
        pytest.skip("needs a control plane of our own, and GREENSCHED_KUBECONFIG names another")
    with ControlPlane() as running:
        config = yaml.safe_load(default_scheduler_config(running.options))
        config["profiles"] = [{"schedulerName": labels.SCHEDULER_NAME}]
        config["leaderElection"] = {"leaderElect": False}
        running.start_scheduler("greensched", yaml.safe_dump(config))
        running.create_namespace(WORK)
        yield running


@contextmanager
def staged(plane: ControlPlane, world: World, **settings: object) -> Iterator[Stage]:
    """Prepare a world's day, with all of the operator's processes running."""
    pace = FastClock(RATE, time.time() + _LEAD_S, world.start_s)
    processes = OperatorProcesses(plane, pace, **(_SETTINGS | settings))
    processes.install()
    stage = Stage(plane, processes, Day(world, pace, WORK))

    async def set_up() -> None:
        async with ApiClient(plane.access) as client:
            names = await create_nodes(client, node_groups_of(world))
            await wait_until_ready(client, names)
            await create_signals(client, stage.day)
            await publish(client, stage.day)

    asyncio.run(set_up())
    plane.kubectl("apply", "-f", "-", stdin=json.dumps(_POLICY))
    processes.start_all()
    processes.wait_until_called(WORK)
    yield stage
    for name in [each.name for each in plane.processes.all()]:
        if name.startswith("operator-"):
            plane.stop(name)


@pytest.fixture(scope="module")
def stage(plane: ControlPlane) -> Iterator[Stage]:
    """Prepare this module's day."""
    with staged(plane, dirty_and_clean()) as ready:
        yield ready
