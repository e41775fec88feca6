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
- where nodes are capped, work takes the least joules of any level at the speed without a cap, and
  may stop;
- where jobs are suspended, they may stop and go on at any moment for nothing, and run up to their
  estimate longer while that earns money;
- who runs away from its data gets it over the cheapest and over the quickest link, once, and at the
  cleanest moment;
- where elastic jobs are scaled, they run as fast as with most workers, for what those take who do
  most, each, for their time; while that earns money, for what those take who do least.

What is left of idle watts, which all schedules pay alike, is added: all of them, or where nodes can
sleep what they take asleep; while prices are negative, such a node counts with the most that it
can draw. What panels and batteries can save at most is taken off (`bound_supply`).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from greensched_core.errors import BadInput
from greensched_policies.cost import Floats, Integers
from greensched_policies.scaling import NO_SCALING
from greensched_simulator.bound_inputs import (
    Course,
    Group,
    Signal,
    courses_of,
    fits,
    groups_of,
    idle_total,
)
from greensched_simulator.bound_moves import Moves
from greensched_simulator.bound_supply import saved_by_panels
from greensched_simulator.elastic_jobs import Range, range_of
from greensched_simulator.outcome import shortest_runtimes_s
from greensched_simulator.precedence import earliest_ready_s
from greensched_simulator.schedule import Schedule
from greensched_simulator.world import World

SLOT_S = 3600.0
_EPSILON_S = 1e-6


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


class Freedom(NamedTuple):
    """What schedules may do beside running each job in one piece at full speed."""

    suspend: bool = False
    cap: bool = False
    scale: bool = False

    @property
    def stops(self) -> bool:
        """Tell whether a bound must hold for runs that stop; what a cap slows is longer."""
        return self.suspend or self.cap or self.scale


class _Choices(NamedTuple):
    """What one job may do on one group: a variable for each slot, [V]."""

    slot: Integers
    cost: Floats  # of the whole job, or of running all of the slot
    work: Floats  # of the job, done by a variable of 1
    filled: Floats  # [V,W] share of the slots from `slot` on that it fills
    is_alone: bool  # all such variables of a slot together fill no more than one of them could


# cost over time, earliest begin, latest end, runtime, length of a slot
_Way = Callable[[Course, float, float, float, float], _Choices]


def least_bill(
    world: World,
    signal: Signal,
    until_s: float,
    latest_end_s: Floats,
    *,
    slot_s: float = SLOT_S,
    preempt: bool = False,
    freedom: Freedom = Freedom(),  # noqa: B008 - frozen
) -> Bound:
    """Return the least energy (J), carbon (g) or cost that the world's jobs can take.

    Jobs run between their arrival and `latest_end_s` ([J]), and until `until_s` at most; with
    `preempt` they may stop and go on for nothing, as with any `freedom`. Nodes are billed from 0 to
    `until_s`. Raises BadInput where a job cannot end in time on any node, and where a grid has no
    data within the window, and for worlds with services or failures.
    """
    if world.outages.node.size:
        raise BadInput(
            f"scenario {world.name} has nodes that fail, which no bound is known for: take "
            "`failures` out, or run without the bound"
        )
    if world.services:
        raise BadInput(
            f"scenario {world.name} has services, which no bound is known for: take them out, or "
            "run without the bound"
        )
    idle = idle_total(world, signal, until_s)
    # Both bound runs that do not stop.
    ways = (_pieces,) if preempt or freedom.stops else (_starts, _pieces)
    groups = groups_of(world, capped=freedom.cap)
    jobs = world.jobs
    scaled = range_of(jobs, world.scaling if freedom.scale else NO_SCALING)
    again = np.isfinite(jobs.save_every_s) * freedom.suspend * jobs.estimate_s / jobs.runtime_s
    starting = (scaled.workers - 1.0) * jobs.startup_s / jobs.runtime_s  # with all workers
    repeats = (1.0 + again * scaled.workers + starting) * scaled.most_work / scaled.least_work
    programmes = [
        _programme(
            world, signal, until_s, latest_end_s, way, slot_s, groups, repeats, scaled, freedom
        )
        for way in ways
    ]
    active = max(programme.least(world.name) for programme in programmes)
    variables = max(each.variables for each in programmes)
    if signal == "energy" or not world.batteries:
        return Bound(idle + active, idle, variables, slot_s)
    saved, least = saved_by_panels(world, signal, until_s)
    return Bound(max(idle + active - saved, least), max(idle - saved, least), variables, slot_s)


def least_totals(world: World, schedules: Sequence[Schedule], until_s: float) -> Least:
    """Return the least energy, cost and carbon of any schedule that may be as late as these.

    Raises BadInput as `least_bill` does.
    """
    ends_s = latest_ends(world, *schedules)
    signals: tuple[Signal, ...] = ("energy", "cost", "carbon")
    freedom = freedom_of(world, schedules)
    totals = (least_bill(world, signal, until_s, ends_s, freedom=freedom) for signal in signals)
    return Least(*(each.total for each in totals))


def freedom_of(world: World, schedules: Sequence[Schedule]) -> Freedom:
    """Return what any of the schedules did beside running jobs in one piece at full speed."""
    return Freedom(
        suspend=any((np.diff(each.stretches.of_jobs.job) == 0).any() for each in schedules),
        cap=any(each.caps.node.size > 0 for each in schedules),
        scale=any(
            (each.stretches.worker >= world.jobs.workers[each.stretches.job]).any()
            for each in schedules
        ),
    )


def _programme(
    world: World,
    signal: Signal,
    until_s: float,
    latest_end_s: Floats,
    way: _Way,
    slot_s: float,
    groups: tuple[Group, ...],
    repeats: Floats,
    scaled: Range,
    freedom: Freedom,
) -> "_Programme":
    """Return the programme in which each job runs in one of two ways.

    It takes `repeats` times as much, [J], where that earns money.
    """
    courses, slowest = courses_of(world, signal, until_s), min(group.speed for group in groups)
    if freedom.cap:
        slowest *= min(group.slowest for group in groups)
    programme = _Programme(groups, int(np.ceil(until_s / slot_s)) + 1)
    # Who waits for others is never ready before they could have ended on the fastest nodes.
    shortest_s = shortest_runtimes_s(world) / scaled.rate
    ready_s = earliest_ready_s(world.precedence, world.jobs.arrival_s, shortest_s)
    workers = scaled.rate * scaled.least_work
    moves = Moves(world, signal, until_s, suspend=freedom.suspend)
    for job in range(world.jobs.arrival_s.size):
        begin_s, end_s = float(ready_s[job]), min(float(latest_end_s[job]), until_s)
        for place, group in enumerate(groups):
            if fits(world.jobs, job, group):
                runtime_s = float(world.jobs.runtime_s[job]) / group.speed / float(scaled.rate[job])
                course = courses[group.zone].of_watts(*group.watts(world.jobs, job))
                moved = moves.of(job, group.zone)
                choices = way(course, begin_s + moved.wait_s, end_s, runtime_s, slot_s)
                longer = repeats[job]
                if world.jobs.workers[job] > 1.0:  # it may run at the pace of the slowest one
                    longer *= group.speed / slowest
                cost = choices.cost * np.where(choices.cost < 0.0, longer, 1.0) * workers[job]
                cost += choices.work * moved.cost
                asks = world.jobs.workers[job] * workers[job]
                programme.add(world, job, place, choices._replace(cost=cost), asks)
        if not programme.knows(job):
            raise BadInput(
                f"scenario {world.name}: {world.job_names[job]} cannot end by {end_s:.0f} s on any "
                "node within what is billed: there is no schedule to bound; name a policy "
                "beside it that runs all jobs, or give a longer length"
            )
    return programme


def latest_ends(world: World, *schedules: Schedule) -> Floats:
    """Return until when each job may run for a bound on these schedules, [J].

    It is the deadline, or the latest end in any of them, so that it also bounds those that miss; no
    limit where there is neither.
    """
    deadlines_s = world.jobs.deadline_s
    latest: Floats = np.where(np.isfinite(deadlines_s), deadlines_s, -np.inf)
    for schedule in schedules:
        latest = np.fmax(latest, schedule.end_s)  # NaN: it never ran
    return np.where(np.isneginf(latest), np.inf, latest)


class _Programme:
    """Gathers the programme job by job, and solves it."""

    def __init__(self, groups: tuple[Group, ...], slots: int) -> None:
        self._groups, self._slots = groups, slots
        self.variables = 0
        self._last_job = -1
        self._cost: list[Floats] = []
        self._work: list[Floats] = []
        self._job: list[Integers] = []
        self._filled: list[tuple[Integers, Integers, Floats]] = []  # row, variable, amount
        self._alone: list[tuple[Integers, Integers, Floats]] = []  # a job runs at one place

    def knows(self, job: int) -> bool:
        """Tell whether there is any choice for the last job."""
        return self._last_job == job

    def add(self, world: World, job: int, place: int, choices: _Choices, workers: float) -> None:
        """Take in what a job of at least so many workers may do on the group at `place`."""
        count = choices.slot.size
        if count == 0:
            return
        self._last_job = job
        variable = np.arange(self.variables, self.variables + count)
        self.variables += count
        self._cost.append(choices.cost)
        self._work.append(choices.work)
        self._job.append(np.full(count, job))
        place_in, width = np.nonzero(choices.filled)
        slots, shares = choices.slot[place_in] + width, choices.filled[place_in, width]
        jobs = world.jobs
        for resource, amounts in enumerate((jobs.cpu_cores, jobs.memory_bytes, jobs.gpus)):
            if amounts[job] > 0:
                amount = shares * amounts[job] * workers / self._groups[place].capacity[resource]
                row = (place * 3 + resource) * self._slots + slots
                self._filled.append((row, variable[place_in], amount))
        if choices.is_alone:
            self._alone.append((job * self._slots + slots, variable[place_in], shares))

    def least(self, name: str) -> float:
        """Return the least cost; raise BadInput when the solver finds none."""
        filled = _stacked(self._filled)
        rows, limits = _numbered(filled[0]), np.ones(np.unique(filled[0]).size)
        entries = [(rows, filled[1], filled[2])]
        if self._alone:
            alone = _stacked(self._alone)
            entries.append((_numbered(alone[0]) + limits.size, alone[1], np.ones(alone[2].size)))
            limits = np.concatenate([limits, _most(alone[0], alone[2])])
        row, variable, amount = _stacked(entries)
        job = np.concatenate(self._job)
        shape = (limits.size, self.variables)
        solved = linprog(
            np.concatenate(self._cost),
            A_ub=coo_array((amount, (row, variable)), shape=shape).tocsr(),
            b_ub=limits,
            A_eq=coo_array(
                (np.concatenate(self._work), (job, np.arange(self.variables))),
                shape=(self._last_job + 1, self.variables),
            ).tocsr(),
            b_eq=np.ones(self._last_job + 1),
            bounds=(0, None),
            method="highs-ipm",  # several times faster here than the simplex
        )
        if not solved.success:
            raise BadInput(f"scenario {name}: no bound was found: {solved.message}")
        return float(solved.fun)


def _stacked(entries: list[tuple[Integers, Integers, Floats]]) -> tuple[Integers, Integers, Floats]:
    rows, variables, amounts = zip(*entries, strict=True)
    return np.concatenate(rows), np.concatenate(variables), np.concatenate(amounts)


def _numbered(rows: Integers) -> Integers:
    """Return rows numbered from 0 without holes."""
    return np.unique(rows, return_inverse=True)[1].astype(np.int64)


def _most(rows: Integers, shares: Floats) -> Floats:
    """Return the greatest share of each row, in the order of `_numbered`."""
    most = np.zeros(np.unique(rows).size)
    np.maximum.at(most, _numbered(rows), shares)
    return most


def _slots(begin_s: float, end_s: float, slot_s: float) -> tuple[Integers, Floats, Floats]:
    """Return the slots that an interval touches, and where its part of each begins and ends."""
    first = int(begin_s // slot_s)
    slot = np.arange(first, max(int(np.ceil(end_s / slot_s)), first + 1))
    return slot, np.maximum(slot * slot_s, begin_s), np.minimum((slot + 1) * slot_s, end_s)


def _starts(
    course: Course, begin_s: float, end_s: float, runtime_s: float, slot_s: float
) -> _Choices:
    """Return a variable for each slot in which the run may start."""
    latest_s = end_s - runtime_s
    if latest_s < begin_s - _EPSILON_S:
        return _Choices(
            np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros((0, 1)), is_alone=False
        )
    slot, first_s, last_s = _slots(begin_s, max(latest_s, begin_s), slot_s)
    width = int(np.ceil(runtime_s / slot_s)) + 1
    edges_s = (slot[:, None] + np.arange(width)) * slot_s

    def filled(start_s: Floats) -> Floats:
        ends_s = np.minimum(start_s[:, None] + runtime_s, edges_s + slot_s)
        inside_s: Floats = np.maximum(ends_s - np.maximum(start_s[:, None], edges_s), 0.0)
        return inside_s / slot_s

    cost = course.least_run(first_s, last_s, runtime_s)
    least = np.minimum(filled(first_s), filled(last_s))
    return _Choices(slot, cost, np.ones(slot.size), least, is_alone=False)


def _pieces(
    course: Course, begin_s: float, end_s: float, runtime_s: float, slot_s: float
) -> _Choices:
    """Return a variable for each slot: the share of it in which the job runs, at its best time."""
    if end_s - begin_s < runtime_s - _EPSILON_S:
        return _Choices(
            np.zeros(0, np.int64), np.zeros(0), np.zeros(0), np.zeros((0, 1)), is_alone=True
        )
    slot, first_s, last_s = _slots(begin_s, end_s, slot_s)
    available = (last_s - first_s) / slot_s
    kept = available > 0
    slot, first_s, last_s, available = slot[kept], first_s[kept], last_s[kept], available[kept]
    cost = course.least_rate(first_s, last_s) * slot_s
    return _Choices(
        slot, cost, np.full(slot.size, slot_s / runtime_s), available[:, None], is_alone=True
    )
