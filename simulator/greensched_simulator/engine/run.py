"""A whole run in one structure: its inputs, what has happened, and what is still to come.

The engine's functions take its address, and read the fields that they need.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.experimental import structref

from greensched_policies.compiling.compiled import fast, inlined
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.kernel.plan import Plan, is_kept
from greensched_policies.kernel.starts import most_slots
from greensched_policies.library.functions import MOST_STARTS
from greensched_policies.library.grid_table import GridTable
from greensched_simulator.arrays.heaps import Heap, earliest_s, empty_heap
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.nodes import NO_AUTOSCALED, AutoscaledGroups, Outages
from greensched_simulator.arrays.precedence import Precedence
from greensched_simulator.engine.state.autoscaler import (
    NEXT_READY_S,
    NodeAutoscaler,
    OffSpans,
    new_autoscaler,
    turn_off_beyond_min,
)
from greensched_simulator.engine.state.choices import NOWHERE, RuleSet
from greensched_simulator.engine.state.cluster import ClusterState
from greensched_simulator.engine.state.job_estimates import JobEstimates
from greensched_simulator.engine.state.memory import (
    CapsMemory,
    NodesMemory,
    StartsMemory,
    caps_memory,
    nodes_memory,
    starts_memory,
)
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.engine.state.refused import nothing_refused
from greensched_simulator.engine.state.terms import RunConfig

# Which jobs may start while an earlier one finds no room; `policy` explains the names.
DISCIPLINES = ("oldest-fit", "any-fit", "strict-order", "easy", "together", "provisioned")
OLDEST_FIT, ANY_FIT, STRICT_ORDER, EASY, TOGETHER, PROVISIONED = range(6)

ARRIVED, STEP, IS_OPEN, OUTAGE = range(4)  # of the events' counts
NO_JOB = -1  # follows the last waiting job

# Begin, end, zone, cores, and the index of the same job's next segment; NOWHERE after the last.
Ahead = list[tuple[float, float, int, float, int]]
# Job, node, time of placement, time since which the node slept, start, end, worker, zone of the
# data, time when the worker was to begin: as `RunSegments`.
Suspended = list[tuple[int, int, float, float, float, float, int, int, float]]
# Time, node, CPU frequency and GPU cap.
CapChanges = list[tuple[float, int, float, float]]
Broken = list[tuple[int, float, float]]  # node, begin and end of each outage that took place


class Given(NamedTuple):
    """The inputs of a run, which changes `cluster` and `plan`."""

    jobs: JobArrays
    precedence: Precedence
    estimates: JobEstimates
    cluster: ClusterState
    grid: GridTable  # the forecast
    plan: Plan
    terms: RunConfig
    steps_s: Floats  # times at which any grid changes, if a rule needs them
    outages: Outages
    autoscaled: AutoscaledGroups = NO_AUTOSCALED


class EventState(NamedTuple):
    """The pending events, and how far a run is."""

    ends: Heap  # when a running job ends, stops or is reconsidered
    starts: Heap  # when a waiting job starts
    # [4] jobs that have arrived; grid steps that have passed; what an open event still needs, 0 if
    # none is open; outage events that have passed
    counts: Integers
    now_s: Floats  # [1] time of the last event


class WaitingQueue(NamedTuple):
    """A linked list of the jobs that are due but found no room, in the order in which they came.

    An index of `behind` is a job; index J is the head of the list.
    """

    behind: Integers  # [J+1] the next job; NO_JOB after the last one
    last: Integers  # [1] the index after which the next job is appended
    least: Floats  # [2] no job in the queue asks for fewer cores, nor for fewer bytes


class QueueTurns(NamedTuple):
    """The jobs that waited when serving of a queue began, and how far serving is."""

    line: Integers  # [J] these jobs, in the order of the rule
    # [4] index of the job whose turn it is; number of jobs, 0 while the queue is not served; 1
    # while an agent chooses a node; 1 if agents choose nodes at all
    counts: Integers
    reserved: Floats  # [5] the fields of the reservation
    refused: Floats  # [R,3] see `refused`


class Queue(NamedTuple):
    """The jobs that wait, unordered; during serving, those that did not start in their turn."""

    jobs: Integers  # [J]
    length: Integers  # [1]
    turns: QueueTurns


class Agenda(NamedTuple):
    """The planned run segments after each job's next one; the plan keeps room for them.

    `suspended` holds the past run segments that ended with a suspension or a stop.
    """

    run_segments: Ahead
    first: Integers  # [J] index of each job's first; NOWHERE if it has none
    suspended: Suspended


class Run(NamedTuple):
    """The fields of a run; functions get a `RunStructure` with the same fields."""

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
    unmet: Integers  # [J] how many jobs each still waits for; empty if none ever waits for another
    is_away: Integers  # [N] 1 for a node that is away; empty if no node ever fails
    autoscaler: NodeAutoscaler
    off: OffSpans
    is_plain: bool  # whether jobs only arrive, start where there is room and end
    nodes_memory: NodesMemory
    starts_memory: StartsMemory  # empty if no decision reads the plan
    caps_memory: CapsMemory


@structref.register
class _RunType(types.StructRef):
    def preprocess_fields(self, fields: Any) -> Any:
        """Return the fields with types that hold any value, not only a literal."""
        return tuple((name, types.unliteral(kind)) for name, kind in fields)


class RunStructure(structref.StructRefProxy):
    """The fields of `Run` behind one address; a tuple would pass 90 arrays one by one."""

    def __new__(cls, *fields: Any) -> Any:
        """Return a structure of all fields."""
        return structref.StructRefProxy.__new__(cls, *fields)


structref.define_proxy(RunStructure, _RunType, [*Run._fields])


@fast
def run_of(given: Given, recorded: Recorded, rules: RuleSet) -> Any:
    """Return the structure of a new run, which keeps its inputs alive."""
    count, precedence, outages = given.jobs.arrival_s.size, given.precedence, given.outages
    autoscaler, off = new_autoscaler(given.autoscaled), [(0, 0.0, 0.0) for _ in range(0)]
    turn_off_beyond_min(autoscaler, given.cluster, off)
    zones, slot_s = given.grid.per_step.size, given.terms.slot_s
    starts = MOST_STARTS if is_kept(given.plan) else 0
    return RunStructure(
        given.jobs, precedence, given.estimates, given.cluster, given.grid, given.plan,
        given.terms, given.steps_s, outages, rules, recorded,
        initial_events(count), empty_waiting_queue(count), empty_queue(count),
        empty_agenda(count if given.terms.may_suspend or given.terms.may_pause else 0),
        [(0.0, 0, 1.0, 1.0) for _ in range(0)], [(0, 0.0, 0.0) for _ in range(0)],
        precedence.parents.copy(),
        np.zeros(outages.node.max() + 1 if outages.node.size else 0, np.int64),
        autoscaler, off, is_plain(given),
        nodes_memory(zones, given.cluster.zone.size, rules.where_net),
        starts_memory(zones, starts, most_slots(given.estimates.runtime_s.ravel(), slot_s)),
        caps_memory(rules.cap_net),
    )  # fmt: skip


@fast
def is_plain(given: Given) -> bool:
    """Return whether jobs only arrive, start where there is room and end."""
    terms = given.terms
    is_usual = terms.discipline == OLDEST_FIT and not terms.may_suspend
    is_usual = is_usual and given.cluster.cap.shape[1] == 0 and given.steps_s.size == 0
    is_usual = is_usual and given.autoscaled.group.size == 0
    return bool(is_usual and given.precedence.parents.size == 0 and given.outages.at_s.size == 0)


@fast
def initial_events(jobs: int) -> EventState:
    """Return the events of a new run."""
    starts = empty_heap(jobs + 1)  # one is of no job: when held jobs are planned again
    return EventState(empty_heap(jobs), starts, np.zeros(4, np.int64), np.zeros(1))


@fast
def empty_waiting_queue(jobs: int) -> WaitingQueue:
    """Return an empty queue with room for all jobs."""
    return WaitingQueue(np.full(jobs + 1, NO_JOB), np.array([jobs]), np.full(2, np.inf))


@fast
def empty_queue(jobs: int) -> Queue:
    """Return an empty queue with room for all jobs, not being served, for which rules choose."""
    turns = QueueTurns(
        np.empty(jobs, np.int64), np.zeros(4, np.int64), np.zeros(5), nothing_refused()
    )
    return Queue(np.empty(jobs, np.int64), np.zeros(1, np.int64), turns)


@fast
def empty_agenda(jobs: int) -> Agenda:
    """Return an agenda without run segments."""
    return Agenda(
        [(0.0, 0.0, 0, 0.0, 0) for _ in range(0)],
        np.full(jobs, NOWHERE, np.int64),
        [(0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0.0) for _ in range(0)],
    )


@inlined
def next_times_s(run: Run) -> tuple[float, float, float, float]:
    """Return the times of the next end, start, arrival and node event; infinity if none.

    An end is any time at which a running job is due. A node event is that a node fails, comes back,
    or is ready after it was off.
    """
    events, arrival_s, at_s = run.events, run.jobs.arrival_s, run.outages.at_s
    arrived, come = events.counts[ARRIVED], events.counts[OUTAGE]
    return (
        earliest_s(events.ends),
        earliest_s(events.starts),
        arrival_s[arrived] if arrived < arrival_s.size else np.inf,
        min(at_s[come] if come < at_s.size else np.inf, run.autoscaler.times_s[NEXT_READY_S]),
    )
