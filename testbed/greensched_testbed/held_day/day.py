"""A day of work to replay, and the outcome of each of its jobs."""

from dataclasses import dataclass, field

import numpy as np

from greensched_core import labels
from greensched_simulator.world.world import World
from greensched_testbed.operator_processes import FastClock

JOB, POD, CRON_RUN, GANG = "job", "pod", "cron-run", "gang"
KINDS = (JOB, JOB, POD, CRON_RUN)  # in turn; what has several workers is a gang of pods


@dataclass(frozen=True)
class Day:
    """A world, its start on the operator's clock, and where it is replayed."""

    world: World
    pace: FastClock
    namespace: str
    scheduler: str = labels.SCHEDULER_NAME

    @property
    def start_s(self) -> float:
        """The world's start, in seconds since the epoch on the operator's clock."""
        return self.pace.shows_s

    def now_s(self) -> float:
        """Return the seconds since the world's start."""
        return self.pace.clock.now() - self.start_s

    @property
    def is_equally_fast(self) -> bool:
        """Whether all nodes have one speed, so that a runtime is known before a pod has a node."""
        speed = self.world.nodes.speed
        return bool(np.all(speed == speed[0]))

    def items(self) -> list["ItemRun"]:
        """Return each of the world's jobs, of which nothing has happened yet."""
        return [
            ItemRun(place, KINDS[place % len(KINDS)] if workers == 1 else GANG, workers)
            for place, workers in enumerate(self.world.jobs.workers.astype(int).tolist())
        ]

    def run_wall_s(self, place: int, node: int) -> float:
        """Return the wall seconds that a job takes on a node."""
        runtime_s = float(self.world.jobs.runtime_s[place])
        return runtime_s / float(self.world.nodes.speed[node]) / self.pace.rate


@dataclass
class PodSpan:
    """Where and when one pod ran; times in seconds since the world's start."""

    node: str
    started_s: float
    ended_s: float | None = None


@dataclass
class ItemRun:
    """The outcome of one job; times in seconds since the world's start, None: did not happen."""

    place: int
    kind: str
    workers: int = 1
    created_s: float | None = None
    latest_s: float | None = None  # the latest start that we wrote on it
    released_s: float | None = None  # our hold was first seen to be gone
    planned_s: float | None = None  # the planned start at that time
    release_reason: str = ""
    # Mean carbon of a run on arrival, where there was room, by the first plan written on it.
    arrival_g_per_kwh: float | None = None
    pods: dict[str, PodSpan] = field(default_factory=dict)  # by name

    @property
    def started_s(self) -> float | None:
        """When the last of its pods got a node."""
        whole = len(self.pods) == self.workers
        return max(pod.started_s for pod in self.pods.values()) if whole else None

    @property
    def ended_s(self) -> float | None:
        """When the last of its pods ended."""
        ends_s = [pod.ended_s for pod in self.pods.values() if pod.ended_s is not None]
        return max(ends_s) if len(ends_s) == self.workers else None
