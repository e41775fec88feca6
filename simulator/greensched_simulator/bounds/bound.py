"""A lower bound on any schedule's cost in a world, with perfect information: a linear programme.

These relaxations ensure that no schedule beats the bound:

- A job draws at least the watts per core of its node's best load: for a node's curve P,
  P(u) − P(0) ≥ u · min over v of (P(v) − P(0)) / v. While prices are negative, it draws at most the
  greatest of these quotients.
- If nodes can sleep, or all sleep while empty, the saving S ends when work runs: the quotient is
  (P(v) − P(0) + S) / v, and waking is free.
- Replicas are as busy as if all of a service ran on the fastest nodes, uncapped (`least_use.py`).
- A start is known only to its slot, and costs as much as at the best moment within the slot.
- A run fills as much of each slot as with the least favourable start within its slot.
- Jobs may be split between starts and groups of nodes. A group's nodes are one large node.
- With power caps, work takes the least joules of any cap at the speed without a cap, and may stop.
  Replicas draw the least watts of any cap.
- With suspension, jobs may stop and go on at any moment for free. They run up to their estimate
  longer while that earns money.
- A job in another zone than its data gets the data once, over the cheapest and the quickest link,
  at the cleanest moment.
- With scaling, elastic jobs run as fast as with most workers, at the cost of the most efficient
  number of workers (work per worker-time); while that earns money, of the least efficient.
- With node failures, all nodes always have room and no work is lost. The last run of a job that
  begins again is a whole one; all other jobs may stop for free. While that earns money, each
  failure lets a job do all of its work once more.
- Service replicas run at the times at which all bounded schedules run them. In the rest of their
  lives they may run while that earns money.
- Work that one of these schedules leaves undone may be left undone, for its charge.

The idle watts that all schedules pay are added: all of them or, if nodes can sleep, those asleep,
and none while a node may be away. While prices are negative, a node that can sleep counts with the
most that it can draw. The most that panels and batteries can save is subtracted (`supply.py`).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.scaling import NO_SCALING
from greensched_simulator.arrays.precedence import earliest_ready_s
from greensched_simulator.bounds.inputs import (
    CostCourse,
    SignalCourse,
    SignalName,
    courses_of,
    idle_total,
)
from greensched_simulator.bounds.least_use import LeastUse
from greensched_simulator.bounds.limits import Limits, limits_of
from greensched_simulator.bounds.moves import Moves
from greensched_simulator.bounds.programme import Programme
from greensched_simulator.bounds.supply import saved_by_panels
from greensched_simulator.bounds.ways import Choices, pieces, starts, stay
from greensched_simulator.runs.charges import charges_of
from greensched_simulator.runs.job_times import shortest_runtimes_s
from greensched_simulator.runs.node_groups import AlikeNodes, fits_group, groups_of
from greensched_simulator.runs.replica_use import most_use
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.elastic_jobs import Range, range_of
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World

BOUND_SLOT_S = 3600.0


class Bound(NamedTuple):
    """A lower bound on the total over a window; perhaps no schedule reaches it."""

    total: float  # joules, grams or money, idle watts included
    idle: float  # the part that all schedules pay; with panels, less the most that these save
    variables: int  # of the programme
    slot_s: float


class Least(NamedTuple):
    """The least totals over a window, each bounded by itself; field names as in outcomes."""

    energy_j: float
    cost: float
    carbon_g: float


# cost over time, earliest begin, latest end, runtime, length of a slot
_Way = Callable[[CostCourse, float, float, float, float], Choices]


class _Setting(NamedTuple):
    """The inputs that the programmes of one bound share."""

    world: World
    signal: SignalName
    until_s: float
    slot_s: float
    limits: Limits
    groups: tuple[AlikeNodes, ...]
    courses: tuple[SignalCourse, ...]  # of zones
    charges: Floats  # [J] for each job that may be left undone; infinity: it may not
    scaled: Range

    @property
    def earns(self) -> bool:
        """Return whether drawing power ever earns money."""
        return any(each.negative[-1] < 0.0 for each in self.courses)


def least_bill(
    world: World,
    signal: SignalName,
    until_s: float,
    limits: Limits,
    *,
    slot_s: float = BOUND_SLOT_S,
    preempt: bool = False,
) -> Bound:
    """Return the least energy (J), carbon (g) or cost that the world's jobs and services can take.

    It holds for all schedules within the limits. Jobs run between their arrival and their latest
    end, and at most until `until_s`; with `preempt` they may stop and go on for free. Nodes are
    billed from 0 to `until_s`. Raises BadInput if a job that all schedules ran cannot end in time
    on any node, or if a grid has no data within the window.
    """
    setting = _setting(world, signal, until_s, slot_s, limits)
    idle, jobs = idle_total(world, signal, until_s), world.jobs.arrival_s.size
    is_whole = _whole(setting) & (not preempt)
    # For runs that do not stop, both programmes are lower bounds.
    programmes = [
        _programme(setting, each)
        for each in (is_whole, np.zeros(jobs, dtype=np.bool_))[0 if is_whole.any() else 1 :]
    ]
    active = max(programme.least(world.name) for programme in programmes) + _gaps(setting)
    variables = max(each.variables for each in programmes)
    if signal == "energy" or not world.batteries:
        return Bound(idle + active, idle, variables, slot_s)
    saved, least = saved_by_panels(world, signal, until_s)
    return Bound(max(idle + active - saved, least), max(idle - saved, least), variables, slot_s)


def least_totals(world: World, schedules: Sequence[Schedule], until_s: float) -> Least:
    """Return the least energy, cost and carbon of any schedule within the limits of these.

    Raises BadInput as `least_bill` does.
    """
    limits = limits_of(world, *schedules)
    signals: tuple[SignalName, ...] = ("energy", "cost", "carbon")
    return Least(*(least_bill(world, each, until_s, limits).total for each in signals))


def _setting(
    world: World, signal: SignalName, until_s: float, slot_s: float, limits: Limits
) -> _Setting:
    charges = np.full(world.jobs.arrival_s.size, np.inf)
    left = np.flatnonzero(limits.never_ran)
    if left.size:
        row = ("energy", "cost", "carbon").index(signal)
        charges[left] = charges_of(world, left, until_s)[row]
    return _Setting(
        world,
        signal,
        until_s,
        slot_s,
        limits,
        groups_of(world, capped=limits.freedom.cap),
        courses_of(world, signal, until_s),
        charges,
        range_of(world.jobs, world.scaling if limits.freedom.scale else NO_SCALING),
    )


def _whole(setting: _Setting) -> npt.NDArray[np.bool_]:
    """Return which jobs end with a run in one piece, and pay at least 0 for all other runs, [J].

    A job that failures stop, or that slow workers hold up, runs longer, which may earn money. A job
    that can be suspended goes on where it was saved.
    """
    jobs, nodes, earns = setting.world.jobs, setting.world.nodes, setting.earns
    if setting.limits.freedom.stops:
        return np.zeros(jobs.arrival_s.size, dtype=np.bool_)
    fails = setting.world.outages.node.size > 0
    is_parted = fails & (earns | np.isfinite(jobs.save_every_s))
    is_held_up = earns & (jobs.workers > 1.0) & (nodes.speed.min() < nodes.speed.max())
    whole: npt.NDArray[np.bool_] = ~(is_parted | is_held_up)
    return whole


def _repeats(setting: _Setting) -> Floats:
    """Return the most times that a job may do its work while that earns money, [J]."""
    jobs, scaled, outages = setting.world.jobs, setting.scaled, setting.world.outages
    suspends = setting.limits.freedom.suspend
    again = np.isfinite(jobs.save_every_s) * suspends * jobs.estimate_s / jobs.runtime_s
    starting = (scaled.workers - 1.0) * jobs.startup_s / jobs.runtime_s  # with all workers
    fails_s, end_s = outages.at_s[outages.is_back == 0], setting.limits.latest_end_s
    last = np.searchsorted(fails_s, np.minimum(end_s, setting.until_s), side="right")
    runs = 1.0 + np.maximum(last - np.searchsorted(fails_s, jobs.arrival_s), 0)
    work = (1.0 + starting) * runs + again * scaled.workers
    repeats: Floats = work * scaled.most_work / scaled.least_work
    return repeats


def _programme(setting: _Setting, is_whole: npt.NDArray[np.bool_]) -> Programme:
    """Return the programme in which some jobs run in one piece and all others may stop."""
    world = setting.world
    slots = int(np.ceil(setting.until_s / setting.slot_s)) + 1
    programme = Programme(world.jobs, setting.groups, slots)
    _add_jobs(programme, setting, is_whole)
    _add_lives(programme, setting)
    return programme


def _add_jobs(programme: Programme, setting: _Setting, is_whole: npt.NDArray[np.bool_]) -> None:
    world, scaled, slot_s = setting.world, setting.scaled, setting.slot_s
    jobs, until_s = world.jobs, setting.until_s
    # A job that waits for others is not ready before they could have ended on the fastest nodes.
    shortest_s = shortest_runtimes_s(world) / scaled.rate
    ready_s = earliest_ready_s(world.precedence, jobs.arrival_s, shortest_s)
    suspends, longest = setting.limits.freedom.suspend, _longest(setting)
    moves = Moves(world, setting.signal, until_s, suspend=suspends)
    for job in np.flatnonzero(~is_replica(jobs)).tolist():
        programme.begin()
        end_s = min(float(setting.limits.latest_end_s[job]), until_s)
        workers = float(scaled.rate[job] * scaled.least_work[job])
        way: _Way = starts if is_whole[job] else pieces
        for place, group in _able(setting, job):
            runtime_s = float(jobs.runtime_s[job] / group.speed / scaled.rate[job])
            course = setting.courses[group.zone].of_watts(*group.watts(jobs, job))
            moved = moves.of(job, group.zone)
            choices = way(course, float(ready_s[job]) + moved.wait_s, end_s, runtime_s, slot_s)
            longer = np.where(choices.cost < 0.0, longest[place, job], 1.0)
            cost = choices.cost * longer * workers + choices.work * moved.cost
            asks = float(jobs.workers[job]) * workers
            programme.add(job, place, choices._replace(cost=cost), asks)
        if np.isfinite(setting.charges[job]):
            programme.leave_undone(float(setting.charges[job]))
        if not programme.is_possible:
            raise BadInput(
                f"scenario {world.name}: {world.job_names[job]} cannot end by {end_s:.0f} s on any "
                "node within what is billed: no schedule exists to bound; also name a policy "
                "that runs all jobs, or give a longer length"
            )


def _longest(setting: _Setting) -> Floats:
    """Return how many times longer jobs may run in each group while that earns money, [G,J].

    A job of several workers may run at the speed of the slowest one.
    """
    jobs, every = setting.world.jobs, np.arange(setting.world.jobs.workers.size)
    slowest = np.full(every.size, min(group.speed for group in setting.groups))
    if setting.limits.freedom.cap:
        slowest *= np.min([group.slowest(jobs, every) for group in setting.groups], axis=0)
    speed = np.array([group.speed for group in setting.groups])[:, None]
    held_up = np.where(jobs.workers > 1.0, speed / slowest, 1.0)
    longest: Floats = _repeats(setting) * held_up
    return longest


def _add_lives(programme: Programme, setting: _Setting) -> None:
    """Add the parts of replicas' lives that all schedules run; undone ones pay their share."""
    jobs, charges, least = setting.world.jobs, setting.charges, LeastUse(setting.world)
    most = most_use(setting.world)
    for job, begin_s, end_s in zip(*(each.tolist() for each in setting.limits.lives), strict=True):
        end_s = min(end_s, setting.until_s)
        if begin_s >= end_s:
            continue
        programme.begin()
        used = least.between(job, begin_s, end_s)
        for place, group in _able(setting, job):
            watts = group.staying_watts(jobs, job, used.use, most[job])
            course = setting.courses[group.zone].of_steps(used.times_s, *watts)
            programme.add(job, place, stay(course, begin_s, end_s, setting.slot_s), 1.0)
        if np.isfinite(charges[job]):
            programme.leave_undone(charges[job] * (end_s - begin_s) / jobs.runtime_s[job])


def _gaps(setting: _Setting) -> float:
    """Return the least cost of replicas in the parts of their lives that not all schedules run."""
    if not setting.earns:
        return 0.0
    jobs, lives, most = setting.world.jobs, setting.limits.lives, most_use(setting.world)
    total = 0.0
    for job in np.flatnonzero(is_replica(jobs)).tolist():
        kept, least = np.flatnonzero(lives.job == job), 0.0
        for _, group in _able(setting, job):
            high_w = group.staying_watts(jobs, job, np.zeros(0), most[job])[1]
            course = setting.courses[group.zone].of_watts(0.0, high_w)
            whole = course.of(float(jobs.arrival_s[job]), float(jobs.leaves_at_s[job]))
            sure = sum(course.of(float(lives.begin_s[at]), float(lives.end_s[at])) for at in kept)
            least = min(least, whole - sure)
        total += least
    return total


def _able(setting: _Setting, job: int) -> Iterator[tuple[int, AlikeNodes]]:
    """Yield the index and the group of all groups whose nodes are large enough for a job."""
    for place, group in enumerate(setting.groups):
        if fits_group(setting.world.jobs, job, group):
            yield place, group
