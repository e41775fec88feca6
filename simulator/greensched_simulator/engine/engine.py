"""The event loop: jobs arrive, wait for their planned start, are placed, run and end.

Some are suspended in between, and wait for the start of their next stretch as for their first.

What the `when` rule rejects is gone on arrival: it never queues, and nothing is kept for it.

Between events nothing changes, so time jumps from one to the next. At one instant ends come before
failures of nodes, these before planned starts and these before arrivals; a queue is served once all
of them are through. The loop only records; energy, money and carbon are reckoned afterwards, by one
accounting for all policies.

It stops wherever a job needs a start or a node, and all that is to come is kept in arrays: `run`
answers by rules, and the environments let somebody else answer, between two calls.
"""

from typing import Any

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.grid_table import GridTable
from greensched_simulator.arrays.heaps import pop
from greensched_simulator.arrays.jobs import Jobs
from greensched_simulator.arrays.precedence import Precedence, let_follow
from greensched_simulator.compiling.compiled import fast
from greensched_simulator.compiling.lending import lent
from greensched_simulator.engine.events import (
    ARRIVED,
    IS_OPEN,
    OUTAGE,
    STEP,
    STEPPED,
    UNPACED,
    UNSERVED,
    Aside,
    Events,
    next_times_s,
    nothing_aside,
    nothing_yet,
)
from greensched_simulator.engine.execution.outages import (
    Broken,
    Outages,
    back_s,
    can_fail,
    come_back,
    fail,
)
from greensched_simulator.engine.execution.pacing import Changes, move_ends, next_to_pace, pace
from greensched_simulator.engine.execution.running import (
    free_plan,
    leave_nodes,
)
from greensched_simulator.engine.execution.runs import (
    Agenda,
    Suspended,
    choose_runs,
    clear_agenda,
    put_on_agenda,
)
from greensched_simulator.engine.execution.suspending import goes_on, suspend
from greensched_simulator.engine.execution.workers import workers_of
from greensched_simulator.engine.plain_run import is_plain, run_plainly
from greensched_simulator.engine.queue.deciding import (
    HOW_FAST,
    IN_TURN,
    OVER,
    WHEN,
    WHERE,
    due_or_put_off,
    place_by_rule,
    plan_start,
)
from greensched_simulator.engine.queue.queueing import OLDEST_FIT, PROVISIONED, join, serve
from greensched_simulator.engine.queue.turns import are_taken
from greensched_simulator.engine.queue.waiting import Waiting, fill, fill_all, nobody_waiting
from greensched_simulator.engine.state.choices import NOWHERE, Rules, Terms
from greensched_simulator.engine.state.cluster import Cluster
from greensched_simulator.engine.state.job_estimates import Prospects
from greensched_simulator.engine.state.progress import CHANGED, STOP_S
from greensched_simulator.engine.state.recorded import Recorded, nothing_recorded
from greensched_simulator.engine.state.starts import Plan


@fast
def run(
    jobs: Jobs,
    precedence: Precedence,
    prospects: Prospects,
    cluster: Cluster,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
    steps_s: Floats,
    outages: Outages,
) -> tuple[Recorded, Changes, Suspended, Broken]:
    """Run all jobs to their end and return what happened.

    That is of each job in its only or last stretch, which node was capped when, the stretches after
    which jobs were suspended or stopped, and which node was away when.

    `cluster` and `plan` are left as they then are, the nodes empty. `steps_s` are the times at
    which any grid changes, if nodes are capped or the queue looks at them.
    """
    count = jobs.arrival_s.size
    recorded = nothing_recorded(jobs, cluster, terms, outages.node.size > 0)
    waiting, events = nobody_waiting(count), nothing_yet(count)
    aside = nothing_aside(count, count if terms.may_suspend else 0, steps_s, precedence, outages)
    _run_lent(
        events, aside, waiting, lent(jobs), lent(prospects), lent(cluster),
        lent(recorded), lent(grid), lent(plan), lent(terms), rules,
    )  # fmt: skip
    return recorded, aside.changes, aside.agenda.suspended, aside.broken


@fast
def _run_lent(
    events: Events,
    aside: Aside,
    waiting: Waiting,
    jobs: Jobs,
    prospects: Prospects,
    cluster: Cluster,
    recorded: Recorded,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
) -> None:
    """Run all jobs to their end; what the caller keeps until then is lent."""
    if is_plain(aside, cluster, terms):
        outages = lent(aside.outages)
        run_plainly(
            events, waiting, jobs, prospects, cluster, recorded, grid, plan, terms, rules, outages
        )
    while True:
        head, job = next_asked(
            events, aside, waiting, jobs, prospects, cluster, recorded, grid, plan, terms, rules
        )
        if head == OVER:
            return
        now_s = events.now_s[0]
        if head == WHEN:
            planned_s = plan_by_rule(
                job, now_s, jobs, prospects, grid, plan, aside.agenda, recorded, terms, rules
            )
            job = due_or_put_off(job, now_s, planned_s, events.starts)
        if job >= 0 and terms.discipline != OLDEST_FIT:
            join(aside.queue, job)
        elif job >= 0:
            place_by_rule(
                job, now_s, waiting, jobs, cluster, recorded, events.ends, grid, plan, terms, rules
            )


@fast
def next_asked(
    events: Events,
    aside: Aside,
    waiting: Waiting,
    jobs: Jobs,
    prospects: Prospects,
    cluster: Cluster,
    recorded: Recorded,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
) -> tuple[int, int]:
    """Let happen what asks for no start, node or level; return what is asked next, of which job.

    Who is asked for its start is asked for its node, or joins the queue, at once, if it starts now.
    Where agents choose nodes in a queue, a job is asked for its node when its turn comes (IN_TURN).
    Where they choose levels, a node is asked for its own (HOW_FAST).
    """
    counts, ends, starts = events.counts, events.ends, events.starts
    while True:
        if counts[IS_OPEN] > 0:
            head, whose = _close(events, aside, jobs, cluster, recorded, grid, plan, terms, rules)
            if whose != NOWHERE:
                return head, whose
        end_s, start_s, arrival_s, outage_s = next_times_s(events, jobs, aside.outages)
        next_s = min(end_s, start_s, arrival_s, outage_s)
        if next_s == np.inf:
            return OVER, NOWHERE
        counts[IS_OPEN] = UNSERVED
        if counts[STEP] < aside.steps_s.size and aside.steps_s[counts[STEP]] < next_s:
            events.now_s[0], counts[IS_OPEN] = aside.steps_s[counts[STEP]], STEPPED
            continue
        events.now_s[0] = next_s
        if end_s <= start_s and end_s <= arrival_s and end_s <= outage_s:
            _, job = pop(ends)
            _look_at(
                job, waiting, jobs, prospects, cluster, recorded, events, grid, plan, aside, terms,
                rules,
            )  # fmt: skip
        elif outage_s <= start_s and outage_s <= arrival_s:
            _fail_or_come_back(
                waiting, jobs, cluster, recorded, events, grid, plan, aside, terms, rules
            )
        elif start_s <= arrival_s:
            _, job = pop(starts)
            return (WHEN if np.isnan(recorded.planned_s[job]) else WHERE), job
        else:
            counts[ARRIVED] += 1
            job = counts[ARRIVED] - 1
            if aside.unmet.size == 0 or aside.unmet[job] == 0:
                return WHEN, job


@fast
def _close(
    events: Events,
    aside: Aside,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    grid: GridTable,
    plan: Plan,
    terms: Terms,
    rules: Rules,
) -> tuple[int, int]:
    """Do what follows an event: a queue is served and nodes are capped after an instant's last.

    Return what an agent is asked before all is done: for the node of a job whose turn has come, or
    for the level of a node. Else of NOWHERE.
    """
    now_s, counts, queue, ends = events.now_s[0], events.counts, aside.queue, events.ends
    if counts[IS_OPEN] != UNPACED:
        is_served = are_taken(queue.turns)
        serves = counts[IS_OPEN] == UNSERVED or terms.discipline == PROVISIONED
        is_last = is_served or min(next_times_s(events, jobs, aside.outages)) > now_s
        if is_served or (serves and is_last and queue.length[0] > 0):
            job = serve(now_s, queue, jobs, cluster, recorded, ends, grid, plan, terms, rules)
            if job != NOWHERE:
                return IN_TURN, job
        while counts[STEP] < aside.steps_s.size and aside.steps_s[counts[STEP]] <= now_s:
            cluster.cap[CHANGED, :] = 1.0
            counts[STEP] += 1
        counts[IS_OPEN] = UNPACED if is_last and cluster.cap.shape[1] > 0 else 0
    if counts[IS_OPEN] == UNPACED:
        node = next_to_pace(cluster) if terms.asks_how_fast else NOWHERE
        if node != NOWHERE:
            return HOW_FAST, node
        if terms.asks_how_fast:
            move_ends(jobs, cluster, recorded, ends, terms)
        else:
            pace(now_s, jobs, cluster, recorded, ends, aside.changes, grid, terms, rules)
        counts[IS_OPEN] = 0
    return OVER, NOWHERE


@fast
def plan_by_rule(
    job: int,
    now_s: float,
    jobs: Jobs,
    prospects: Prospects,
    grid: GridTable,
    plan: Plan,
    agenda: Agenda,
    recorded: Recorded,
    terms: Terms,
    rules: Rules,
) -> float:
    """Return when a job that has just arrived is to start, and keep room for it in the plan.

    NaN says that it is rejected.
    """
    if terms.may_suspend and not terms.may_reject and jobs.save_every_s[job] < np.inf:
        zone: Any = np.int64(NOWHERE)  # the constant itself would be a type of its own
        runs = choose_runs(job, now_s, zone, jobs, prospects, grid, plan, recorded, terms, rules)
        if runs.zone != NOWHERE:
            put_on_agenda(job, now_s, runs, jobs, agenda, recorded, plan, terms)
            recorded.planned_s[job] = recorded.kept_from_s[job]
            return float(recorded.planned_s[job])
    return plan_start(job, now_s, jobs, prospects, grid, plan, recorded, terms, rules)


@fast
def _look_at(
    job: int,
    waiting: Waiting,
    jobs: Jobs,
    prospects: Prospects,
    cluster: Cluster,
    recorded: Recorded,
    events: Events,
    grid: GridTable,
    plan: Plan,
    aside: Aside,
    terms: Terms,
    rules: Rules,
) -> None:
    """See to a running job: it goes on, or leaves its room to others, ended or suspended."""
    now_s, ends, agenda = events.now_s[0], events.ends, aside.agenda
    if terms.may_suspend and goes_on(
        job, now_s, jobs, prospects, cluster, recorded, ends, grid, plan, agenda, terms, rules
    ):
        return
    node, workers = recorded.node[job], workers_of(job, recorded)
    leave_nodes(job, now_s, jobs, cluster, recorded, terms)
    if terms.may_suspend and recorded.progress[STOP_S, job] > 0.0:
        suspend(job, now_s, jobs, cluster, recorded, events.starts, agenda)
    else:
        free_plan(job, now_s, jobs, cluster, recorded, plan, terms)
        if terms.may_suspend:
            clear_agenda(job, agenda, plan, terms)
        if aside.unmet.size > 0:
            arrived = events.counts[ARRIVED]
            let_follow(job, now_s, aside.precedence, aside.unmet, arrived, events.starts)
    if terms.discipline == OLDEST_FIT:
        fill_all(
            job, node, workers, now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms,
            rules,
        )  # fmt: skip


@fast
def _fail_or_come_back(
    waiting: Waiting,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    events: Events,
    grid: GridTable,
    plan: Plan,
    aside: Aside,
    terms: Terms,
    rules: Rules,
) -> None:
    """Let a node fail or come back, as is next; others get the room that comes free."""
    now_s, ends, outages = events.now_s[0], events.ends, aside.outages
    node, is_back = outages.node[events.counts[OUTAGE]], outages.is_back[events.counts[OUTAGE]]
    events.counts[OUTAGE] += 1
    if is_back == 1 and aside.is_away[node] == 1:
        aside.is_away[node] = 0
        come_back(node, now_s, cluster, terms)
        if terms.discipline == OLDEST_FIT:
            fill(node, now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms, rules)
    elif is_back == 0 and can_fail(node, now_s, cluster):
        aside.is_away[node] = 1
        aside.broken.append((node, now_s, back_s(outages, events.counts[OUTAGE], node)))
        freed = fail(
            node, now_s, jobs, cluster, recorded, ends, events.starts, plan, aside.agenda, terms
        )
        if terms.discipline == OLDEST_FIT:
            for other in freed:
                fill(other, now_s, waiting, jobs, cluster, recorded, ends, grid, plan, terms, rules)
