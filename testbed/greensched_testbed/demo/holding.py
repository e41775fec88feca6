"""What holding did in a run of the demo: printed while it runs, counted at its end.

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

DAY_STARTS_S = 6 * 3600.0  # time of day at which the workload, and its grid, begin
_AT_THEIR_LATEST = (ReleaseReason.LATEST_START.value, ReleaseReason.RELEASER.value)
_EXAMPLES = 3  # pods printed by name; more would scroll the rest away
_TELL_EVERY_S = 3600.0


@dataclass(frozen=True, slots=True)
class Marks:
    """What the operator has written on a pod that it held."""

    planned_s: float | None = None
    released_wall_s: float | None = None  # when we saw it, seconds since the epoch
    reason: str = ""  # of its start

    @property
    def is_for_later(self) -> bool:
        """Tell whether a later start was planned; else it was held only until that was known."""
        return self.planned_s is not None


def time_of_day(at_s: float) -> str:
    """Return seconds of the workload as the time of its day, `13:05`; later days are added."""
    days, within_s = divmod(DAY_STARTS_S + at_s, 86_400.0)
    minutes = int(within_s // 60)
    later = f" +{days:.0f} d" if days else ""
    return f"{minutes // 60:02d}:{minutes % 60:02d}{later}"


class PodMetadata(msgspec.Struct):
    """Its name, and what is written on it."""

    name: str
    annotations: dict[str, str] = {}


class Pod(msgspec.Struct):
    """A pod, as far as it tells of holding."""

    metadata: PodMetadata


class HoldingLog:
    """Notes what a watch tells of held pods, and tells it on; the only writer of its marks."""

    def __init__(
        self, wall: Clock, starts_s: float, now: Callable[[], float], tell: Callable[[str], None]
    ) -> None:
        """`starts_s` is when the workload began on the operator's clock, `now` its seconds."""
        self.marks: dict[str, Marks] = {}
        self._wall = wall
        self._starts_s = starts_s
        self._now = now
        self._tell = tell
        self._told_at = 0.0

    def list_began(self) -> None:
        """A full list tells again what is there."""

    def list_ended(self) -> None:
        """A pod missing from a list stays as it was last seen."""

    def remove(self, item: Pod) -> None:
        """A pod that is gone stays as it was last seen."""

    def upsert(self, item: Pod) -> None:
        """Note that a pod is held, until when, and that it was started."""
        name, said = item.metadata.name, item.metadata.annotations
        if labels.HELD_AT not in said:
            return
        before = self.marks.get(name)
        after = before or Marks()
        if labels.PLANNED_START in said:
            after = replace(after, planned_s=self._seconds(said[labels.PLANNED_START]))
        if labels.RELEASED_AT in said and after.released_wall_s is None:
            after = replace(
                after,
                released_wall_s=self._wall.now(),
                reason=said.get(labels.RELEASE_REASON, ""),
            )
        self.marks[name] = after
        self._tell_change(name, before or Marks(), after)

    def _seconds(self, text: str) -> float | None:
        try:
            return parse_timestamp(text) - self._starts_s
        except BadInput:
            return None

    def _tell_change(self, name: str, before: Marks, after: Marks) -> None:
        if not after.is_for_later:
            return
        now_s, marks = self._now(), [each for each in self.marks.values() if each.is_for_later]
        released = sum(each.released_wall_s is not None for each in marks)
        if after.released_wall_s is not None and before.released_wall_s is None:
            if released <= _EXAMPLES:
                self._tell(f"{time_of_day(now_s)}  released {name}, by {after.reason}")
        elif before.planned_s is None and after.planned_s is not None and len(marks) <= _EXAMPLES:
            until = time_of_day(after.planned_s)
            self._tell(f"{time_of_day(now_s)}  held {name} until {until}")
        if now_s - self._told_at < _TELL_EVERY_S:
            return
        self._told_at = now_s - now_s % _TELL_EVERY_S
        self._tell(f"{time_of_day(now_s)}  {self._counted(marks, released)}")

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
    """Return what holding came to in a run; `factor` is wall seconds per second of the workload.

    `zone_of` names the grid zone of each node, `grid` has the slots of each zone.
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
    """Return a zone's mean carbon intensity over a run; its last slot holds for ever.

    Of a run without length it is what holds at its begin.
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
