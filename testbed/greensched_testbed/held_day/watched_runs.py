"""What watches see of a day's work, and what it amounts to.

Times are those of the watch's events, since timestamps in objects are whole seconds.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from greensched_core import labels
from greensched_core.signals.timestamps import parse_timestamp
from greensched_policies.billing.timelines import Placements
from greensched_testbed.held_day.day import Day, ItemRun, PodSpan
from greensched_testbed.held_day.objects import ITEM


class BoundPod(NamedTuple):
    """A pod whose runtime is known, since it and its gang have nodes."""

    place: int  # of its job
    name: str
    slowest: int  # node of its gang
    started_s: float  # when the last of its gang got a node


class _Meta(msgspec.Struct):
    name: str
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct):
    nodeName: str = ""
    suspend: bool = False


class _Status(msgspec.Struct):
    phase: str = ""


class Watched(msgspec.Struct):
    """The fields that we read of a pod or a Job."""

    metadata: _Meta
    spec: _Spec
    status: _Status


class _Plan(msgspec.Struct):
    """What is read of the annotation greensched.io/decision."""

    carbonGramsPerKwh: tuple[float | None, float | None]  # as planned, and on arrival


decode = msgspec.json.Decoder(Watched).decode
_decode_plan = msgspec.json.Decoder(_Plan).decode


class WatchedRuns:
    """Records when the watch first reports each change."""

    def __init__(self, day: Day) -> None:
        self.runs = day.items()
        self.open = set(range(len(self.runs)))
        self.bound = asyncio.Queue[BoundPod]()  # whose runtime is to be set
        self._day = day

    def list_began(self) -> None:
        """Do nothing: a full list only repeats existing objects."""

    def list_ended(self) -> None:
        """Do nothing: an object missing from a list keeps its last state."""

    def upsert(self, item: Watched) -> None:
        """Record its hold, its release, its pods' starts and nodes, and its end."""
        place = (item.metadata.labels or {}).get(ITEM)
        if place is None:
            return
        run, now_s = self.runs[int(place)], self._day.now_s()
        self._record_hold(run, item, now_s)
        name, node = item.metadata.name, item.spec.nodeName
        if node and name not in run.pods:
            run.pods[name] = PodSpan(node, now_s)
            if run.started_s is not None and not self._day.is_equally_fast:
                self._set_pace(run, now_s)
        if item.status.phase == "Succeeded" and run.pods[name].ended_s is None:
            run.pods[name].ended_s = now_s
            if run.ended_s is not None:
                self.open.discard(run.place)

    def remove(self, item: Watched) -> None:
        """Do nothing: a deleted object keeps its last state."""

    def _set_pace(self, run: ItemRun, now_s: float) -> None:
        """Let all pods of a job run from now on, as fast as the slowest of their nodes."""
        rows = [node_row(self._day, pod.node) for pod in run.pods.values()]
        slowest = min(rows, key=self._day.world.nodes.speed.__getitem__)
        for name in run.pods:
            self.bound.put_nowait(BoundPod(run.place, name, slowest, now_s))

    def _record_hold(self, run: ItemRun, item: Watched, now_s: float) -> None:
        annotations = item.metadata.annotations or {}
        if labels.LATEST_START in annotations:
            run.latest_s = self._time_s(annotations[labels.LATEST_START])
        if labels.DECISION in annotations and run.arrival_g_per_kwh is None:
            first = _decode_plan(annotations[labels.DECISION])
            _, run.arrival_g_per_kwh = first.carbonGramsPerKwh
        if labels.RELEASE_REASON not in annotations or item.spec.suspend:
            return
        if run.released_s is None:
            run.released_s, run.release_reason = now_s, annotations[labels.RELEASE_REASON]
            if labels.PLANNED_START in annotations:
                run.planned_s = self._time_s(annotations[labels.PLANNED_START])

    def _time_s(self, text: str) -> float:
        return parse_timestamp(text) - self._day.start_s


def node_row(day: Day, node: str) -> int:
    """Return the row of a cluster node in the world's nodes."""
    return day.world.node_names.index(node.removesuffix("-0"))


def placements_of(day: Day, runs: Sequence[ItemRun]) -> Placements:
    """Return where and when each pod ran, as input for bills."""
    jobs = day.world.jobs
    ran = [(run.place, pod) for run in runs for pod in run.pods.values() if pod.ended_s is not None]
    places = np.array([place for place, _ in ran], dtype=np.int64)
    return Placements(
        node=np.array([node_row(day, pod.node) for _, pod in ran], dtype=np.int64),
        start_s=np.array([pod.started_s for _, pod in ran], dtype=np.float64),
        end_s=np.array([pod.ended_s for _, pod in ran], dtype=np.float64),
        cpu_cores=jobs.cpu_cores[places],
        gpus=jobs.gpus[places],
    )


def late(day: Day, runs: Sequence[ItemRun], grace_wall_s: float = 1.0) -> Iterator[ItemRun]:
    """Yield runs that ended more than `grace_wall_s` wall seconds after their deadline."""
    for run in runs:
        due_s = float(day.world.jobs.deadline_s[run.place]) + grace_wall_s * day.pace.rate
        if run.ended_s is not None and run.ended_s > due_s:
            yield run
