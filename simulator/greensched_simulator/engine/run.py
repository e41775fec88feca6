"""All of a run in one structure: what it is given, what has happened, and what is still to come.

Functions of the engine are handed its address, and read of it what they need.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.experimental import structref

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.grid_table import GridTable
from greensched_simulator.arrays.heaps import Heap, earliest_s, empty_heap
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.nodes import Outages
from greensched_simulator.arrays.precedence import Precedence
from greensched_simulator.compiling.compiled import fast, inlined
from greensched_simulator.engine.state.choices import NOWHERE, RuleSet
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.job_estimates import JobEstimates
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.engine.state.refused import nothing_refused
from greensched_simulator.engine.state.starts import Plan
from greensched_simulator.engine.state.terms import RunConfig

# Who may start while an earlier job finds no room; see `policy` for what the names mean.
DISCIPLINES = ("oldest-fit", "any-fit", "nobody-passes", "easy", "together", "provisioned")
OLDEST_FIT, ANY_FIT, NOBODY_PASSES, EASY, TOGETHER, PROVISIONED = range(6)

ARRIVED, STEP, IS_OPEN, OUTAGE = range(4)  # of the events' counts
NOBODY = -1  # behind the last job that waits

# Begin, end, zone, cores, and the place of the next one of the same job, NOWHERE behind the last.
Ahead = list[tuple[float, float, int, float, int]]
# Job, node, when it was placed there, since when the node had slept, start, end, and which of the
# job's workers, in which zone its data lay, and when it was to begin: as `RunSegments`.
Suspended = list[tuple[int, int, float, float, float, float, int, int, float]]
CapChanges = list[tuple[float, int, float]]  # time, node, power cap
Broken = list[tuple[int, float, float]]  # node, begin and end of each outage that took place


class Given(NamedTuple):
    """What a run begins with; it leaves `cluster` and `plan` as they are at its end."""

    jobs: JobArrays
    precedence: Precedence
    estimates: JobEstimates
    cluster: ClusterState
    grid: GridTable  # the forecast
    plan: Plan
    terms: RunConfig
    steps_s: Floats  # times at which any grid changes, where a rule looks at them
    outages: Outages


class EventState(NamedTuple):
    """What is still to come, and how far a run is."""

    ends: Heap  # when a running job is to be looked at
    starts: Heap  # when one is to start
    # [4] jobs that have arrived; steps of any grid that have come; whether an event is not through
    # yet, and with what; times that a node has failed or come back
    counts: Integers
    now_s: Floats  # [1] when the last event was


class WaitingQueue(NamedTuple):
    """A queue of jobs whose time has come but that found no room, in the order in which they came.

    A place in `behind` is a job, the one past the last job is the queue's head.
    """

    behind: Integers  # [J+1] who stands behind; NOBODY behind the last one
    last: Integers  # [1] where the next one queues
    least: Floats  # [2] no job in the queue asks for fewer cores, nor for fewer bytes


class QueueTurns(NamedTuple):
    """Those who waited when a queue began to be served, and what became of it by now."""

    line: Integers  # [J] them, in the order of the rule
    # [4] the place of whose turn it is; how many they are, 0 while nobody is served; 1 while an
    # agent is asked for a node; 1 if agents choose nodes at all
    counts: Integers
    reserved: Floats  # [5] the fields of the reservation
    refused: Floats  # [R,3] see `refused`


class Queue(NamedTuple):
    """The jobs that wait, in no order; while they are served, those who had no luck yet."""

    jobs: Integers  # [J]
    length: Integers  # [1]
    turns: QueueTurns


class Agenda(NamedTuple):
    """The run segments that jobs are to run after the next one, for which the plan keeps room.

    Beside them those that were run, and after which jobs were suspended.
    """

    run_segments: Ahead
    first: Integers  # [J] place of each job's first; NOWHERE if it has none
    suspended: Suspended


class Run(NamedTuple):
    """All of a run, as functions read it; they are handed a `RunStructure` of the same fields."""

    jobs: JobArrays
    precedence: Precedence
    estimates: JobEstimates
    cluster: ClusterState
    grid: GridTable
    plan: Plan
    terms: RunConfig
    steps_s: Floats
    outages: Outages
    rules: RuleSet
    recorded: Recorded
    events: EventState
    waiting: WaitingQueue
    queue: Queue  # where it has an order
    agenda: Agenda  # where jobs may be suspended
    changes: CapChanges  # of power caps, where nodes are capped
    broken: Broken
    unmet: Integers  # [J] how many each job still waits for; without elements where none does
    is_away: Integers  # [N] 1 where a node is; without elements where none ever is
    is_plain: bool  # whether jobs only arrive, start where there is room and end


@structref.register
class _RunType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        """Have fields hold any value of their kind."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class RunStructure(structref.StructRefProxy):
    """The fields of `Run`: as a tuple, 90 arrays would be handed over one by one."""

    def __new__(cls, *fields: Any) -> Any:
        """Return a structure of all fields."""
        return structref.StructRefProxy.__new__(cls, *fields)


structref.define_proxy(RunStructure, _RunType, [*Run._fields])


@fast
def run_of(given: Given, recorded: Recorded, rules: RuleSet) -> Any:
    """Return the structure of a run that begins, and keeps what it is given alive."""
    count, precedence, outages = given.jobs.arrival_s.size, given.precedence, given.outages
    return RunStructure(
        given.jobs, precedence, given.estimates, given.cluster, given.grid, given.plan,
        given.terms, given.steps_s, outages, rules, recorded,
        nothing_yet(count), nobody_waiting(count), nobody_queueing(count),
        empty_agenda(count if given.terms.may_suspend else 0),
        [(0.0, 0, 1.0) for _ in range(0)], [(0, 0.0, 0.0) for _ in range(0)],
        precedence.parents.copy(),
        np.zeros(outages.node.max() + 1 if outages.node.size else 0, np.int64),
        is_plain(given),
    )  # fmt: skip


@fast
def is_plain(given: Given) -> bool:
    """Tell whether jobs only arrive, start where there is room and end."""
    terms = given.terms
    is_usual = terms.discipline == OLDEST_FIT and not terms.may_suspend
    is_usual = is_usual and given.cluster.cap.shape[1] == 0 and given.steps_s.size == 0
    return bool(is_usual and given.precedence.parents.size == 0 and given.outages.at_s.size == 0)


@fast
def nothing_yet(jobs: int) -> EventState:
    """Return the events of a run that begins."""
    return EventState(empty_heap(jobs), empty_heap(jobs), np.zeros(4, np.int64), np.zeros(1))


@fast
def nobody_waiting(jobs: int) -> WaitingQueue:
    """Return an empty queue with room for all jobs."""
    return WaitingQueue(np.full(jobs + 1, NOBODY), np.array([jobs]), np.full(2, np.inf))


@fast
def nobody_queueing(jobs: int) -> Queue:
    """Return an empty queue with room for all jobs, while nobody is served, by rules alone."""
    turns = QueueTurns(
        np.empty(jobs, np.int64), np.zeros(4, np.int64), np.zeros(5), nothing_refused()
    )
    return Queue(np.empty(jobs, np.int64), np.zeros(1, np.int64), turns)


@fast
def empty_agenda(jobs: int) -> Agenda:
    """Return the agenda of jobs that have no plan."""
    return Agenda(
        [(0.0, 0.0, 0, 0.0, 0) for _ in range(0)],
        np.full(jobs, NOWHERE, np.int64),
        [(0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0) for _ in range(0)],
    )


@inlined
def next_times_s(run: Run) -> tuple[float, float, float, float]:
    """Return when a job is to be looked at, to start and to arrive next, and a node to fail.

    Or to come back. Infinity: none is.
    """
    events, arrival_s, at_s = run.events, run.jobs.arrival_s, run.outages.at_s
    arrived, come = events.counts[ARRIVED], events.counts[OUTAGE]
    return (
        earliest_s(events.ends),
        earliest_s(events.starts),
        arrival_s[arrived] if arrived < arrival_s.size else np.inf,
        at_s[come] if come < at_s.size else np.inf,
    )
