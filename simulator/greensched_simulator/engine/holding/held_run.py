"""A run in which a GreenPolicy holds jobs as the operator does, with the engine's events."""

import numpy as np

from greensched_policies.compiling.compiled import fast, inlined
from greensched_policies.compiling.lending import lent_structure
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.heaps import push, size_of
from greensched_simulator.engine.engine import next_asked
from greensched_simulator.engine.holding.budgets import spend
from greensched_simulator.engine.holding.deciding import holds, let_go, replan_held, stays_held
from greensched_simulator.engine.holding.hold import (
    FIRST_S,
    HELD,
    PAUSES,
    REPLANS,
    Hold,
    HoldTable,
    empty_hold,
)
from greensched_simulator.engine.holding.pausing import pause_running
from greensched_simulator.engine.holding.slots import forget_later_segments
from greensched_simulator.engine.queue.deciding import AGAIN, OVER, WHEN, place_by_rule
from greensched_simulator.engine.queue.queueing import join
from greensched_simulator.engine.run import (
    ARRIVED,
    OLDEST_FIT,
    Broken,
    CapChanges,
    Given,
    Run,
    Suspended,
    run_of,
)
from greensched_simulator.engine.state.autoscaler import OffSpans
from greensched_simulator.engine.state.choices import RuleSet
from greensched_simulator.engine.state.recorded import Recorded, nothing_recorded


@fast
def run_held(
    given: Given, rules: RuleSet, terms: HoldTable
) -> tuple[Recorded, CapChanges, Suspended, Broken, OffSpans]:
    """Run all jobs to their end as `engine.run` does, but hold those that the terms let wait."""
    nodes_fail = given.outages.node.size > 0
    recorded = nothing_recorded(given.jobs, given.cluster, given.terms, nodes_fail)
    whole = run_of(given, recorded, rules)
    hold = empty_hold(terms, given.estimates.runtime_s)
    _run_lent(lent_structure(whole), hold)
    _tell_first_starts(recorded.planned_s, hold.paused)
    return recorded, whole.changes, whole.agenda.suspended, whole.broken, whole.off


@fast
def _run_lent(run: Run, hold: Hold) -> None:
    """Run all jobs to their end; the caller keeps the run alive until then."""
    _queue_next_replan(run, hold)
    while True:
        head, job = next_asked(run)
        now_s = run.events.now_s[0]
        if head == OVER:
            return
        if head == AGAIN:
            is_whole = hold.terms.is_whole[hold.counts[REPLANS] - 1] == 1
            for each in replan_held(now_s, is_whole, run, hold):
                _release(each, now_s, run, hold)
            pause_running(now_s, run, hold)
            _queue_next_replan(run, hold)
        elif head == WHEN and holds(job, now_s, run, hold):
            continue
        elif head == WHEN or not stays_held(job, now_s, run, hold):
            _release(job, now_s, run, hold)


@fast
def _release(job: int, now_s: float, run: Run, hold: Hold) -> None:
    """Let a job start now, or queue for a node; it may be one that a failure has stopped."""
    if let_go(job, hold) or np.isnan(run.recorded.planned_s[job]):
        run.recorded.planned_s[job] = now_s
        forget_later_segments(job, run)
        if _note_first_start(job, now_s, hold):
            spend(job, now_s, hold)
    if run.terms.discipline != OLDEST_FIT:
        join(run.queue, job)
    else:
        place_by_rule(job, now_s, run)


@inlined
def _note_first_start(job: int, now_s: float, hold: Hold) -> bool:
    """Return whether a job starts for the first time, and note when."""
    if hold.paused.shape[1] == 0:
        return True
    is_first = np.isnan(hold.paused[FIRST_S, job])
    if is_first:
        hold.paused[FIRST_S, job] = now_s
    return bool(is_first)


@fast
def _tell_first_starts(planned_s: Floats, paused: Floats) -> None:
    """Let jobs that were paused have the planned start of their first run segment."""
    for job in range(paused.shape[1]):
        if paused[PAUSES, job] > 0.0:
            planned_s[job] = paused[FIRST_S, job]


@fast
def _queue_next_replan(run: Run, hold: Hold) -> None:
    """Queue the next time at which all is planned again, while any job is held or may come.

    A running job that may be paused may still be held.
    """
    counts, replans_s, jobs = hold.counts, hold.terms.replans_s, run.jobs.arrival_s.size
    is_over = run.events.counts[ARRIVED] == jobs and counts[HELD] == 0
    is_over = is_over and (hold.paused.shape[1] == 0 or size_of(run.events.ends) == 0)
    if counts[REPLANS] < replans_s.size and not is_over:
        push(run.events.starts, replans_s[counts[REPLANS]], jobs)
        counts[REPLANS] += 1
