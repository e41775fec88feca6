"""The least that any schedule of a world can cost, with perfect information: a linear programme.

What is relaxed, so that no schedule beats the bound:

- a job draws at least the watts per core of its node's best load: for a curve P of a node,
  P(u) − P(0) ≥ u · min over v of (P(v) − P(0)) / v; and at most as the greatest of these
  quotients, which counts while prices are negative;
- where nodes can sleep, or all do while they are empty, the watts S that this saves end with the
  work: (P(v) − P(0) + S) / v takes the place of the quotient above, and nobody has to wake;
- a start is known to its slot only and costs what the best moment within the slot would cost;
- a run fills of each slot what it would fill at the least favourable moment of its start;
- jobs may be split between starts and groups of nodes; a group's nodes are one large node;
- where nodes are capped, work takes the least joules of any power cap at the speed without a cap,
and may stop; replicas draw the least watts of any power cap;
- where jobs are suspended, they may stop and go on at any moment for nothing, and run up to their
  estimate longer while that earns money;
- who runs away from its data gets it over the cheapest and over the quickest link, once, and at the
  cleanest moment;
- where elastic jobs are scaled, they run as fast as with most workers, for what those take who do
  most, each, for their time; while that earns money, for what those take who do least;
- where nodes fail, all have room all the time and nobody loses work: the last run of a job that
  begins again is a whole one, all others may stop for nothing. While that earns money, each failure
  lets a job do all of its work once more;
- replicas of services run in the times in which they do under all schedules that are bounded; in
  the rest of their lives they may, while that earns money;
- what one of these schedules leaves undone may be left undone, for its charge.

What is left of idle watts, which all schedules pay alike, is added: all of them, or where nodes can
sleep what they take asleep, and none while a node may be away; while prices are negative, a node
that can sleep counts with the most that it can draw. What panels and batteries can save at most is
taken off (`supply.py`).
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
    Signal,
    SignalCourse,
    courses_of,
    idle_total,
)
from greensched_simulator.bounds.limits import Limits, limits_of
from greensched_simulator.bounds.moves import Moves
from greensched_simulator.bounds.programme import Programme
from greensched_simulator.bounds.supply import saved_by_panels
from greensched_simulator.bounds.ways import Choices, pieces, starts, stay
from greensched_simulator.runs.charges import charges_of
from greensched_simulator.runs.node_groups import AlikeNodes, fits, groups_of
from greensched_simulator.runs.outcome import shortest_runtimes_s
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.elastic_jobs import Range, range_of
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World

SLOT_S = 3600.0


class Bound(NamedTuple):
    """The least total over a window; nothing is lower, and perhaps nothing is as low."""

    total: float  # joules, grams or money, idle watts included
    idle: float  # of it, what all schedules pay alike; with panels less what these save at most
    variables: int  # of the programme
    slot_s: float


class Least(NamedTuple):
    """The least totals over a window, each bounded by itself; the names are those of outcomes."""

    energy_j: float
    cost: float
    carbon_g: float


# cost over time, earliest begin, latest end, runtime, length of a slot
_Way = Callable[[CostCourse, float, float, float, float], Choices]


class _Setting(NamedTuple):
    """What the programmes of one bound share."""

    world: World
    signal: Signal
    until_s: float
    slot_s: float
    limits: Limits
    groups: tuple[AlikeNodes, ...]
    courses: tuple[SignalCourse, ...]  # of zones
    charges: Floats  # [J] for each job that may be left undone; infinity: it may not
    scaled: Range

    @property
    def earns(self) -> bool:
        """Tell whether to draw power ever earns money."""
        return any(each.negative[-1] < 0.0 for each in self.courses)


def least_bill(
    world: World,
    signal: Signal,
    until_s: float,
    limits: Limits,
    *,
    slot_s: float = SLOT_S,
    preempt: bool = False,
) -> Bound:
    """Return the least energy (J), carbon (g) or cost that the world's jobs and services can take.

    It holds for all schedules that keep to the limits. Jobs run between their arrival and their
    latest end, and until `until_s` at most; with `preempt` they may stop and go on for nothing.
    Nodes are billed from 0 to `until_s`. Raises BadInput where a job that all ran cannot end in
    time on any node, and where a grid has no data within the window.
    """
    setting = _setting(world, signal, until_s, slot_s, limits)
    idle, jobs = idle_total(world, signal, until_s), world.jobs.arrival_s.size
    is_whole = _whole(setting) & (not preempt)
    # Both bound runs that do not stop.
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
    """Return the least energy, cost and carbon of any schedule that keeps to what these do.

    Raises BadInput as `least_bill` does.
    """
    limits = limits_of(world, *schedules)
    signals: tuple[Signal, ...] = ("energy", "cost", "carbon")
    return Least(*(least_bill(world, each, until_s, limits).total for each in signals))


def _setting(
    world: World, signal: Signal, until_s: float, slot_s: float, limits: Limits
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
    """Tell which jobs run in one piece at last, and what else they run costs no less than 0, [J].

    A job that nodes stop, or slow workers hold up, runs for longer, which may earn money; a job
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
    """Return how many times its work a job may do at most, [J], where that earns money."""
    jobs, scaled, told = setting.world.jobs, setting.scaled, setting.world.outages
    suspends = setting.limits.freedom.suspend
    again = np.isfinite(jobs.save_every_s) * suspends * jobs.estimate_s / jobs.runtime_s
    starting = (scaled.workers - 1.0) * jobs.startup_s / jobs.runtime_s  # with all workers
    fails_s, end_s = told.at_s[told.is_back == 0], setting.limits.latest_end_s
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
    # Who waits for others is never ready before they could have ended on the fastest nodes.
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
    """Return how many times longer jobs may run in each group where that earns money, [G,J].

    Who has several workers may run at the speed of the slowest one.
    """
    slowest = min(group.speed for group in setting.groups)
    if setting.limits.freedom.cap:
        slowest *= min(group.slowest for group in setting.groups)
    speed = np.array([group.speed for group in setting.groups])[:, None]
    held_up = np.where(setting.world.jobs.workers > 1.0, speed / slowest, 1.0)
    longest: Floats = _repeats(setting) * held_up
    return longest


def _add_lives(programme: Programme, setting: _Setting) -> None:
    """Add what is sure of replicas' lives, part by part; if undone, each for its share."""
    jobs, charges = setting.world.jobs, setting.charges
    for job, begin_s, end_s in zip(*(each.tolist() for each in setting.limits.lives), strict=True):
        end_s = min(end_s, setting.until_s)
        if begin_s >= end_s:
            continue
        programme.begin()
        for place, group in _able(setting, job):
            course = setting.courses[group.zone].of_watts(*group.staying_watts(jobs, job))
            programme.add(job, place, stay(course, begin_s, end_s, setting.slot_s), 1.0)
        if np.isfinite(charges[job]):
            programme.leave_undone(charges[job] * (end_s - begin_s) / jobs.runtime_s[job])


def _gaps(setting: _Setting) -> float:
    """Return the least that replicas can take in the parts of their lives that are not sure."""
    if not setting.earns:
        return 0.0
    jobs, lives = setting.world.jobs, setting.limits.lives
    total = 0.0
    for job in np.flatnonzero(is_replica(jobs)).tolist():
        mine, least = np.flatnonzero(lives.job == job), 0.0
        for _, group in _able(setting, job):
            course = setting.courses[group.zone].of_watts(0.0, group.staying_watts(jobs, job)[1])
            whole = course.of(float(jobs.arrival_s[job]), float(jobs.leaves_at_s[job]))
            sure = sum(course.of(float(lives.begin_s[at]), float(lives.end_s[at])) for at in mine)
            least = min(least, whole - sure)
        total += least
    return total


def _able(setting: _Setting, job: int) -> Iterator[tuple[int, AlikeNodes]]:
    """Yield the groups with nodes that are large enough for a job, and their places."""
    for place, group in enumerate(setting.groups):
        if fits(setting.world.jobs, job, group):
            yield place, group
