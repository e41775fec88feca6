"""Jobs that wait for others to end; they form a directed acyclic graph (DAG)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from greensched_policies.compiling.compiled import fast
from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.arrays.heaps import Heap, push


class Precedence(NamedTuple):
    """The edges of the graph of J jobs; all arrays are empty if no job waits for another one."""

    parents: Integers  # [J] number of jobs that must have ended before the job is ready
    first_child: Integers  # [J+1] index in `child` of the first job that waits for the job
    child: Integers  # [E] the waiting jobs, grouped by the job that they wait for


NO_PRECEDENCE = Precedence(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


def precedence_of(after: Sequence[Sequence[int]]) -> Precedence:
    """Return the edges; `after` holds the indices of the jobs that each job waits for, [J].

    These are smaller than its own.
    """
    edges = sorted((parent, job) for job, parents in enumerate(after) for parent in parents)
    if not edges:
        return NO_PRECEDENCE
    children = np.bincount([parent for parent, _ in edges], minlength=len(after))
    return Precedence(
        np.array([len(parents) for parents in after], np.int64),
        np.concatenate([[0], np.cumsum(children)]).astype(np.int64),
        np.array([child for _, child in edges], np.int64),
    )


def moved(precedence: Precedence, places: Integers, count: int) -> Precedence:
    """Return the same edges among `count` jobs; `places`, [J], are the jobs' new indices.

    The jobs keep their order.
    """
    if precedence.child.size == 0:
        return precedence
    parents, children = np.zeros((2, count), np.int64)
    parents[places] = precedence.parents
    children[places] = np.diff(precedence.first_child)
    first_child = np.concatenate([[0], np.cumsum(children)])
    return Precedence(parents, first_child, places[precedence.child])


class WholeJobs(NamedTuple):
    """For each job, figures of its whole connected graph, [J]."""

    arrival_s: Floats  # of the graph's last job
    runtime_s: Floats  # along the longest path


def whole_jobs(precedence: Precedence, arrival_s: Floats, runtime_s: Floats) -> WholeJobs:
    """Return when all jobs of each job's graph have arrived, and its least runtime."""
    if precedence.child.size == 0:
        return WholeJobs(arrival_s, runtime_s)
    count = arrival_s.size
    links = csr_array(
        (np.ones(precedence.child.size), precedence.child, precedence.first_child),
        shape=(count, count),
    )
    graphs, graph = connected_components(links, directed=False)
    begin_s = earliest_ready_s(precedence, np.zeros(count), runtime_s)
    last_s, longest_s = np.zeros((2, graphs))
    np.maximum.at(last_s, graph, arrival_s)
    np.maximum.at(longest_s, graph, begin_s + runtime_s)
    return WholeJobs(last_s[graph], longest_s[graph])


def latest_ends_s(precedence: Precedence, deadline_s: Floats, longest_s: Floats) -> Floats:
    """Return the latest end of each job, [J], with which all its successors can meet deadlines.

    `longest_s` is the longest expected runtime of each job, [J]. These are the latest finish times
    of the critical path method (Kelley and Walker, "Critical-Path Planning and Scheduling", 1959).
    """
    latest_s = deadline_s.copy()
    for job in range(precedence.parents.size - 1, -1, -1):
        children = children_of(precedence, job)
        if children.size:
            latest_s[job] = min(latest_s[job], (latest_s[children] - longest_s[children]).min())
    return latest_s


def earliest_ready_s(precedence: Precedence, arrival_s: Floats, shortest_s: Floats) -> Floats:
    """Return the earliest time at which each job can be ready, [J], if jobs take `shortest_s`."""
    ready_s = arrival_s.copy()
    for job in range(precedence.parents.size):
        children = children_of(precedence, job)
        ready_s[children] = np.maximum(ready_s[children], ready_s[job] + shortest_s[job])
    return ready_s


def ready_times_s(precedence: Precedence, arrival_s: Floats, end_s: Floats) -> Floats:
    """Return when each job was ready, [J], its parents having ended; NaN: it never was."""
    found_s = arrival_s.copy()
    if precedence.child.size:
        parent = np.repeat(np.arange(arrival_s.size), np.diff(precedence.first_child))
        never = np.isnan(end_s[parent])
        np.maximum.at(found_s, precedence.child, np.where(never, -np.inf, end_s[parent]))
        found_s[precedence.child[never]] = np.nan
    return found_s


def children_of(precedence: Precedence, job: int) -> Integers:
    """Return the indices of the jobs that wait for a job."""
    return precedence.child[precedence.first_child[job] : precedence.first_child[job + 1]]


@fast
def nothing_follows() -> Precedence:
    """Return an empty precedence: no job waits for another one."""
    return Precedence(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


@fast
def queue_ready_children(
    job: int, now_s: float, precedence: Precedence, unmet: Integers, arrived: int, starts: Heap
) -> None:
    """Queue the jobs for a start now that waited only for `job`, which has ended.

    `unmet`, [J], counts the jobs that each still waits for. Jobs that have not arrived are skipped.
    """
    for place in range(precedence.first_child[job], precedence.first_child[job + 1]):
        child = precedence.child[place]
        unmet[child] -= 1
        if unmet[child] == 0 and child < arrived:
            push(starts, now_s, child)
