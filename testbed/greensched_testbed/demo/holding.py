"""Reports what holding did in a run of the demo: prints it meanwhile, counts it at the end.

Times are seconds of the workload unless their names say otherwise.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import msgspec

from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.errors import BadInput
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_testbed.demo.results import HeldPod, Holding
from greensched_testbed.replay import Replay, ReplayedPod

DAY_STARTS_S = 6 * 3600.0  # time of day at which the workload and its grid begin
_AT_THEIR_LATEST = (ReleaseReason.LATEST_START.value, ReleaseReason.RELEASER.value)
_EXAMPLES = 3  # pods printed by name; more would fill the terminal
_REPORT_EVERY_S = 3600.0


@dataclass(frozen=True, slots=True)
class Marks:
    """What the operator has written on a held pod."""

    planned_s: float | None = None
    released_wall_s: float | None = None  # when we first saw it, seconds since the epoch
    reason: str = ""  # of the release

    @property
    def is_for_later(self) -> bool:
        """Whether a later start was planned; otherwise the hold lasted only until the decision."""
        return self.planned_s is not None


def time_of_day(at_s: float) -> str:
    """Return seconds of the workload as a time of day, `13:05`, or `13:05 +1 d` on later days."""
    days, within_s = divmod(DAY_STARTS_S + at_s, 86_400.0)
    minutes = int(within_s // 60)
    later = f" +{days:.0f} d" if days else ""
    return f"{minutes // 60:02d}:{minutes % 60:02d}{later}"


class PodMetadata(msgspec.Struct):
    """A pod's name and annotations."""

    name: str
    annotations: dict[str, str] = {}


class Pod(msgspec.Struct):
    """The fields of a pod that describe its hold."""

    metadata: PodMetadata


class HoldingLog:
    """Records and reports what a watch sees of held pods; the only writer of its marks."""

    def __init__(
        self, wall: Clock, starts_s: float, now: Callable[[], float], report: Callable[[str], None]
    ) -> None:
        """`starts_s`: the workload's start on the operator's clock; `now`: seconds since then."""
        self.marks: dict[str, Marks] = {}
        self._wall = wall
        self._starts_s = starts_s
        self._now = now
        self._report = report
        self._reported_at = 0.0

    def list_began(self) -> None:
        """Do nothing: a full list only repeats existing pods."""

    def list_ended(self) -> None:
        """Do nothing: a pod missing from a list keeps its last state."""

    def remove(self, item: Pod) -> None:
        """Do nothing: a deleted pod keeps its last state."""

    def upsert(self, item: Pod) -> None:
        """Record that a pod is held, until when, and its release."""
        name, annotations = item.metadata.name, item.metadata.annotations
        if labels.HELD_AT not in annotations:
            return
        before = self.marks.get(name)
        after = before or Marks()
        if labels.PLANNED_START in annotations:
            after = replace(after, planned_s=self._seconds(annotations[labels.PLANNED_START]))
        if labels.RELEASED_AT in annotations and after.released_wall_s is None:
            after = replace(
                after,
                released_wall_s=self._wall.now(),
                reason=annotations.get(labels.RELEASE_REASON, ""),
            )
        self.marks[name] = after
        self._report_change(name, before or Marks(), after)

    def _seconds(self, text: str) -> float | None:
        try:
            return parse_timestamp(text) - self._starts_s
        except BadInput:
            return None

    def _report_change(self, name: str, before: Marks, after: Marks) -> None:
        if not after.is_for_later:
            return
        now_s, marks = self._now(), [each for each in self.marks.values() if each.is_for_later]
        released = sum(each.released_wall_s is not None for each in marks)
        if after.released_wall_s is not None and before.released_wall_s is None:
            if released <= _EXAMPLES:
                self._report(f"{time_of_day(now_s)}  released {name}, by {after.reason}")
        elif before.planned_s is None and after.planned_s is not None and len(marks) <= _EXAMPLES:
            until = time_of_day(after.planned_s)
            self._report(f"{time_of_day(now_s)}  held {name} until {until}")
        if now_s - self._reported_at < _REPORT_EVERY_S:
            return
        self._reported_at = now_s - now_s % _REPORT_EVERY_S
        self._report(f"{time_of_day(now_s)}  {self._counted(marks, released)}")

    def _counted(self, marks: Sequence[Marks], released: int) -> str:
        waiting = [each for each in marks if each.released_wall_s is None]
        planned = [each.planned_s for each in waiting if each.planned_s is not None]
        until = ""
        if planned:
            until = f" (until {time_of_day(min(planned))} to {time_of_day(max(planned))})"
        return f"held {len(waiting)}{until}, released {released}"


def holding_of(
    record: Replay,
    marks: Mapping[str, Marks],
    zone_of: Mapping[str, str],
    grid: Mapping[str, Sequence[SyntheticSlot]],
    factor: float,
) -> Holding:
    """Return the result of holding in a run; `factor`: wall seconds per second of the workload.

    `zone_of`: grid zone by node. `grid`: slots by zone.
    """
    later = {name: each for name, each in marks.items() if each.is_for_later}
    pods = [
        _held(run, later[run.task.name], zone_of[run.node], grid, record.started_at, factor)
        for run in record.runs
        if run.task.name in later and run.bound_at is not None and run.created_at is not None
    ]
    reasons = Counter(each.reason for each in later.values())
    return Holding(
        may_wait=sum(run.task.deadline_s is not None for run in record.runs),
        pods=tuple(sorted(pods, key=lambda pod: pod.arrived_s)),
        started_for=dict(sorted(reasons.items())),
        at_latest_start=sum(reasons[name] for name in _AT_THEIR_LATEST),
        deadlines_missed=deadlines_missed(record.runs, factor),
    )


def deadlines_missed(runs: Sequence[ReplayedPod], factor: float) -> int:
    """Return how many pods ended, or will end, after their deadline, or never started.

    A deadline counts from the pod's creation, as the operator counts it.
    """
    missed = 0
    for run in runs:
        task = run.task
        if task.deadline_s is None:
            continue
        if run.bound_at is None or run.created_at is None:
            missed += 1
            continue
        took_s = (run.bound_at - run.created_at) / factor + task.runtime_s
        missed += took_s > task.deadline_s - task.arrival_s
    return missed


def _held(
    run: ReplayedPod,
    marks: Marks,
    zone: str,
    grid: Mapping[str, Sequence[SyntheticSlot]],
    started_at: float,
    factor: float,
) -> HeldPod:
    created, bound = run.created_at or 0.0, run.bound_at or 0.0
    arrived_s, started_s = (max(0.0, wall - started_at) / factor for wall in (created, bound))
    return HeldPod(
        name=run.task.name,
        zone=zone,
        arrived_s=arrived_s,
        started_s=started_s,
        runtime_s=run.task.runtime_s,
        reason=marks.reason,
        cpu_cores=run.task.cpu_cores,
        carbon_g_per_kwh=mean_carbon_g_per_kwh(grid[zone], started_s, run.task.runtime_s),
        at_once_carbon_g_per_kwh=mean_carbon_g_per_kwh(grid[zone], arrived_s, run.task.runtime_s),
    )


def mean_carbon_g_per_kwh(slots: Sequence[SyntheticSlot], begin_s: float, length_s: float) -> float:
    """Return a zone's mean carbon intensity over a run; the last slot has no end.

    For a run of length 0 this is the intensity at its start.
    """
    until_s = begin_s + length_s
    ends_s = (*(slot.start_s for slot in slots[1:]), math.inf)
    within_s = [
        max(min(until_s, end_s) - max(begin_s, slot.start_s), 0.0)
        for slot, end_s in zip(slots, ends_s, strict=True)
    ]
    if sum(within_s) > 0:
        return fmean([slot.carbon_g_per_kwh for slot in slots], within_s)
    return [slot for slot in slots if slot.start_s <= begin_s][-1].carbon_g_per_kwh
