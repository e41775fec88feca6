"""What is still to come in a run of the engine, and what only some rules and worlds need beside."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.heaps import Heap, earliest_s, empty_heap
from greensched_simulator.arrays.jobs import Jobs
from greensched_simulator.arrays.precedence import Precedence
from greensched_simulator.compiling.compiled import fast, inlined
from greensched_simulator.engine.execution.outages import Broken, Outages
from greensched_simulator.engine.execution.pacing import Changes
from greensched_simulator.engine.execution.runs import Agenda, empty_agenda
from greensched_simulator.engine.queue.queueing import Queue, nobody_queueing

ARRIVED, STEP, IS_OPEN, OUTAGE = range(4)  # of the counts
# What an open event still waits for: first the queue, then the levels; a step of a grid in between
# has its own number, since only rules that look at grids then serve the queue.
UNSERVED, UNPACED, STEPPED = 1, 2, 3


class Events(NamedTuple):
    """What is still to come, and how far a run is."""

    ends: Heap  # when a running job is to be looked at
    starts: Heap  # when one is to start
    # [4] jobs that have arrived; steps of any grid that have come; whether an event is not through
    # yet, and with what; times that a node has failed or come back
    counts: Integers
    now_s: Floats  # [1] when the last event was


class Aside(NamedTuple):
    """What only some rules and worlds need: queues with an order, pauses, caps, precedence."""

    queue: Queue
    agenda: Agenda
    changes: Changes
    steps_s: Floats  # times at which any grid changes
    precedence: Precedence
    unmet: Integers  # [J] how many each job still waits for; without elements where none does
    outages: Outages
    is_away: Integers  # [N] 1 where a node is; without elements where none ever is
    broken: Broken


@fast
def nothing_yet(jobs: int) -> Events:
    """Return the events of a run that begins."""
    return Events(empty_heap(jobs), empty_heap(jobs), np.zeros(4, np.int64), np.zeros(1))


@fast
def nothing_aside(
    queueing: int, suspending: int, steps_s: Floats, precedence: Precedence, outages: Outages
) -> Aside:
    """Return what is empty where a run begins, for so many jobs that may queue or be suspended."""
    return Aside(
        nobody_queueing(queueing),
        empty_agenda(suspending),
        [(0.0, 0, 1.0) for _ in range(0)],
        steps_s,
        precedence,
        precedence.parents.copy(),
        outages,
        np.zeros(outages.node.max() + 1 if outages.node.size else 0, np.int64),
        [(0, 0.0, 0.0) for _ in range(0)],
    )


@inlined
def next_times_s(events: Events, jobs: Jobs, outages: Outages) -> tuple[float, float, float, float]:
    """Return when a job is to be looked at, to start and to arrive next, and a node to fail.

    Or to come back. Infinity: none is.
    """
    arrived, come = events.counts[ARRIVED], events.counts[OUTAGE]
    return (
        earliest_s(events.ends),
        earliest_s(events.starts),
        jobs.arrival_s[arrived] if arrived < jobs.arrival_s.size else np.inf,
        outages.at_s[come] if come < outages.at_s.size else np.inf,
    )
