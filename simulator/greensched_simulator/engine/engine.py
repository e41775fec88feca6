"""The event loop: jobs arrive, wait for their planned start, are placed, run and end.

A suspended job waits for its next run segment as it waited for its first.

A job that the `when` rule rejects leaves on arrival: it never queues, and the plan keeps no room.

Nothing changes between events, so time jumps from one to the next. Events at the same time are
handled in this order: ends, node events, planned starts, arrivals. Then the queue is served, and
last the node autoscaler scans. The loop only records. Energy, money and carbon are computed
afterwards, by one accounting for all policies.

The loop stops wherever a job needs a start or a node, and keeps all pending events in arrays. `run`
then asks the rules; the environments ask their agents between two calls.
"""

from typing import Any

import numpy as np

from greensched_policies.compiling.compiled import fast, inlined
from greensched_policies.compiling.lending import lent_structure
from greensched_simulator.arrays.heaps import pop
from greensched_simulator.arrays.precedence import queue_ready_children
from greensched_simulator.engine.autoscaling.scans import expect_scan, next_scan_s, scan
from greensched_simulator.engine.execution.outages import back_s, can_fail, come_back, fail
from greensched_simulator.engine.execution.power_caps import cap_nodes, move_ends, next_to_cap
from greensched_simulator.engine.execution.running import free_plan, leave_nodes
from greensched_simulator.engine.execution.runs import choose_runs, clear_agenda, put_on_agenda
from greensched_simulator.engine.execution.suspending import goes_on, suspend
from greensched_simulator.engine.execution.workers import workers_of
from greensched_simulator.engine.plain_run import run_plainly
from greensched_simulator.engine.queue.deciding import (
    AGAIN,
    HOW_FAST,
    IN_TURN,
    OVER,
    WHEN,
    WHERE,
    due_or_put_off,
    place_by_rule,
    plan_start,
)
from greensched_simulator.engine.queue.queueing import join, serve_queue
from greensched_simulator.engine.queue.turns import are_taken
from greensched_simulator.engine.queue.waiting import fill, fill_all, fill_everywhere
from greensched_simulator.engine.run import (
    ARRIVED,
    IS_OPEN,
    OLDEST_FIT,
    OUTAGE,
    PROVISIONED,
    STEP,
    Broken,
    CapChanges,
    Given,
    Run,
    Suspended,
    next_times_s,
    run_of,
)
from greensched_simulator.engine.state.autoscaler import (
    NEXT_READY_S,
    OffSpans,
    come_up,
)
from greensched_simulator.engine.state.choices import NOWHERE, RuleSet
from greensched_simulator.engine.state.progress import CHANGED, STOP_S
from greensched_simulator.engine.state.recorded import Recorded, nothing_recorded

# What an open event still needs: first the queue is served, then power caps are chosen. A grid step
# has its own number: only the discipline `provisioned` serves the queue at one.
UNSERVED, UNCAPPED, STEPPED = 1, 2, 3


@fast
def run(given: Given, rules: RuleSet) -> tuple[Recorded, CapChanges, Suspended, Broken, OffSpans]:
    """Run all jobs to their end and return what happened.

    The result holds each job's only or last run segment, the changes of power caps, the run
    segments that ended with a suspension or a stop, the outages, and when autoscaled nodes were
    off. All nodes are empty then.
    """
    nodes_fail = given.outages.node.size > 0
    recorded = nothing_recorded(given.jobs, given.cluster, given.terms, nodes_fail)
    whole = run_of(given, recorded, rules)
    _run_lent(lent_structure(whole))
    return recorded, whole.changes, whole.agenda.suspended, whole.broken, whole.off


@fast
def _run_lent(run: Run) -> None:
    """Run all jobs to their end; the caller keeps the run alive until then."""
    if run.is_plain:
        run_plainly(run)
    while True:
        head, job = next_asked(run)
        if head == OVER:
            return
        now_s = run.events.now_s[0]
        if head == WHEN:
            job = due_or_put_off(job, now_s, plan_by_rule(job, now_s, run), run.events.starts)
        if job >= 0 and run.terms.discipline != OLDEST_FIT:
            join(run.queue, job)
        elif job >= 0:
            place_by_rule(job, now_s, run)


@fast
def next_asked(run: Run) -> tuple[int, int]:
    """Advance to the next decision; return its head and its job, or its node for HOW_FAST.

    After WHEN, a job that starts now needs its node, or joins the queue, at once. Where agents
    choose nodes in a queue, a job needs its node when its turn comes (IN_TURN). Where they choose
    power caps, a node needs one (HOW_FAST). AGAIN is the start that is queued for no job.
    """
    events, unmet = run.events, run.unmet
    counts = events.counts
    while True:
        if counts[IS_OPEN] > 0:
            head, target = _close(run)
            if target != NOWHERE:
                return head, target
        end_s, start_s, arrival_s, node_s = next_times_s(run)
        next_s = min(end_s, start_s, arrival_s, node_s)
        if _is_between(next_s, run):
            _pass_between(run)
            continue
        if next_s == np.inf:
            return OVER, NOWHERE
        events.now_s[0], counts[IS_OPEN] = next_s, UNSERVED
        expect_scan(next_s, run)
        if end_s <= start_s and end_s <= arrival_s and end_s <= node_s:
            _, job = pop(events.ends)
            _look_at(job, run)
        elif node_s <= start_s and node_s <= arrival_s:
            _change_nodes(run)
        elif start_s <= arrival_s:
            _, job = pop(events.starts)
            if job == run.jobs.arrival_s.size:  # no job
                return AGAIN, NOWHERE
            return (WHEN if np.isnan(run.recorded.planned_s[job]) else WHERE), job
        else:
            counts[ARRIVED] += 1
            job = counts[ARRIVED] - 1
            if unmet.size == 0 or unmet[job] == 0:
                return WHEN, job


@inlined
def _is_between(next_s: float, run: Run) -> bool:
    """Return whether a grid step or a scan of the node autoscaler comes before the next event."""
    steps_s, step = run.steps_s, run.events.counts[STEP]
    has_step = next_s < np.inf and step < steps_s.size and steps_s[step] < next_s
    return bool(has_step or next_scan_s(run) < next_s)


@fast
def _pass_between(run: Run) -> None:
    """Pass the grid step or the scan that comes first."""
    events, steps_s, scan_s = run.events, run.steps_s, next_scan_s(run)
    counts = events.counts
    if counts[STEP] < steps_s.size and steps_s[counts[STEP]] < scan_s:
        events.now_s[0], counts[IS_OPEN] = steps_s[counts[STEP]], STEPPED
        return
    events.now_s[0] = scan_s
    scan(scan_s, run)


@fast
def _close(run: Run) -> tuple[int, int]:
    """Serve the queue and cap nodes after the last event of an instant.

    Return the decision that an agent must take first: the node of a job whose turn has come, or the
    power cap of a node. Return NOWHERE in second place if there is none.
    """
    now_s, counts, queue, cluster = run.events.now_s[0], run.events.counts, run.queue, run.cluster
    if counts[IS_OPEN] != UNCAPPED:
        is_served = are_taken(queue.turns)
        serves = counts[IS_OPEN] == UNSERVED or run.terms.discipline == PROVISIONED
        is_last = is_served or min(next_times_s(run)) > now_s
        if is_served or (serves and is_last and queue.length[0] > 0):
            job = serve_queue(now_s, run)
            if job != NOWHERE:
                return IN_TURN, job
        while counts[STEP] < run.steps_s.size and run.steps_s[counts[STEP]] <= now_s:
            cluster.cap[CHANGED:, :] = 1.0
            counts[STEP] += 1
        counts[IS_OPEN] = UNCAPPED if is_last and cluster.cap.shape[1] > 0 else 0
    if counts[IS_OPEN] == UNCAPPED:
        domain = next_to_cap(cluster) if run.terms.asks_how_fast else NOWHERE
        if domain != NOWHERE:
            return HOW_FAST, domain
        if run.terms.asks_how_fast:
            move_ends(run)
        else:
            cap_nodes(now_s, run)
        counts[IS_OPEN] = 0
    return OVER, NOWHERE


@fast
def plan_by_rule(job: int, now_s: float, run: Run) -> float:
    """Return the planned start of a job that has just arrived, and keep room for it in the plan.

    NaN: the job is rejected.
    """
    recorded, terms = run.recorded, run.terms
    if terms.may_suspend and not terms.may_reject and run.jobs.save_every_s[job] < np.inf:
        zone: Any = np.int64(NOWHERE)  # numba would give the constant a type of its own
        runs = choose_runs(job, now_s, zone, run)
        if runs.zone != NOWHERE:
            put_on_agenda(job, now_s, runs, run)
            recorded.planned_s[job] = recorded.kept_from_s[job]
            return float(recorded.planned_s[job])
    return plan_start(job, now_s, run)


@fast
def _look_at(job: int, run: Run) -> None:
    """Let a running job go on; or free its nodes, since it has ended or is suspended now."""
    recorded, events, terms = run.recorded, run.events, run.terms
    now_s = events.now_s[0]
    if terms.may_suspend and goes_on(job, now_s, run):
        return
    node, workers = recorded.node[job], workers_of(job, recorded)
    leave_nodes(job, now_s, run)
    may_stop = terms.may_suspend or terms.may_pause
    if may_stop and recorded.progress[STOP_S, job] > 0.0:
        suspend(job, now_s, run)
    else:
        free_plan(job, now_s, run)
        if terms.may_suspend:
            clear_agenda(job, run)
        if run.unmet.size > 0:
            arrived = events.counts[ARRIVED]
            queue_ready_children(job, now_s, run.precedence, run.unmet, arrived, events.starts)
    if terms.discipline == OLDEST_FIT:
        fill_all(job, node, workers, now_s, run)


@fast
def _change_nodes(run: Run) -> None:
    """Let nodes be ready, or the next one fail or come back; waiting jobs get the free room."""
    now_s, counts, outages = run.events.now_s[0], run.events.counts, run.outages
    if run.autoscaler.times_s[NEXT_READY_S] <= now_s:
        come_up(now_s, run.autoscaler, run.cluster)
        if run.terms.discipline == OLDEST_FIT:
            fill_everywhere(now_s, run)
        return
    node, is_back = outages.node[counts[OUTAGE]], outages.is_back[counts[OUTAGE]]
    counts[OUTAGE] += 1
    if is_back == 1 and run.is_away[node] == 1:
        run.is_away[node] = 0
        come_back(node, now_s, run)
        if run.terms.discipline == OLDEST_FIT:
            fill(node, now_s, run)
    elif is_back == 0 and can_fail(node, now_s, run.cluster):
        run.is_away[node] = 1
        run.broken.append((node, now_s, back_s(outages, counts[OUTAGE], node)))
        freed = fail(node, now_s, run)
        if run.terms.discipline == OLDEST_FIT:
            for other in freed:
                fill(other, now_s, run)
