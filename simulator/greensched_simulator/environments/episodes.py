"""A run that stops at each decision of an agent, and goes on with its action. Compiled.

It uses the engine's own loop and functions. Rules of the catalogue take all other decisions, and
replace actions that name no candidate. Decisions with one candidate skip the agent.

For a job of several workers the agent chooses worker by worker, as the extender chooses pod by pod:
each worker sees the room that those before it leave. They start together. In a queue with an order
the agent chooses for each job whose turn has come.
"""

from typing import Any

import numpy as np

from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.compiling.lending import lent_structure
from greensched_policies.costs.capping import POWER_CAPS
from greensched_policies.encoding.reward import penalty_of, reward_of
from greensched_policies.kernel.seeing_nodes import Scratch, empty_scratch
from greensched_simulator.engine.engine import next_asked, plan_by_rule
from greensched_simulator.engine.execution.workers import (
    all_fit,
    node_of,
    workers_of,
)
from greensched_simulator.engine.plain_run import next_plain
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
from greensched_simulator.engine.queue.queueing import join
from greensched_simulator.engine.queue.reservations import search_allowed
from greensched_simulator.engine.queue.turns import reserved_in
from greensched_simulator.engine.queue.waiting import wait
from greensched_simulator.engine.run import OLDEST_FIT, Run
from greensched_simulator.engine.state.choices import NOWHERE, search
from greensched_simulator.engine.state.progress import PAUSE_AT_S
from greensched_simulator.engine.state.refused import refuse
from greensched_simulator.engine.state.starts import starts_between
from greensched_simulator.environments.apply_action import apply_how_fast, apply_when, apply_where
from greensched_simulator.environments.episode_parts import (
    CANDIDATES,
    CAPPED,
    DOMAIN,
    DUE,
    GIVEN,
    HEAD,
    IN_ALL,
    JOB,
    PENDING,
    WORKER,
)
from greensched_simulator.environments.fast_bill import WorkerPlacement, taken_by_job, taken_in_all
from greensched_simulator.environments.observe import (
    hide,
    mark,
    observe_nodes,
    observe_power_caps,
    observe_starts,
)
from greensched_simulator.environments.placing import give_node, start_with_fewer, want
from greensched_simulator.environments.sharing import IDLE, STEPS, reaches, take_share

_penalty_of = compiled(penalty_of, inlined)
_reward_of = compiled(reward_of, inlined)


@fast
def go_on(episodes: Any, shared: Any, own: int, are_new: bool) -> bool:
    """Advance the episodes, each with its action, to their next decisions; threads share the work.

    Each thread has a share of the episodes, which stays in its core's cache. A thread that has
    finished its `own` share helps the others: see `SharedWork`. A step's reward is that of the time
    between the decisions; at the end of an episode, the rest of the reward. New episodes advance to
    their first decision without an action and a reward.

    The first thread then waits for the others, and returns whether they have finished; if not, call
    it again. The others, a `WorkerPool` with its `counters`, wait for the next step, and return if
    none comes.
    """
    book, counters, taken, shares = shared.book, shared.counters, shared.taken, shared.shares
    actions, at_a_time = shared.actions, shared.at_a_time
    scratch = empty_scratch(book.zones, book.nodes)
    while True:
        step = take_share(counters, STEPS, 0)
        # No thread touches an episode before it counts as busy, or one that it has not taken:
        # episodes are replaced while all are idle.
        take_share(counters, IDLE, -1 if own > 0 else 0)
        for turn in range(taken.size):
            share = (own + turn) % taken.size
            while True:
                first = take_share(taken, share, at_a_time)
                last = min(first + at_a_time, shares[share + 1])
                if first >= last:
                    break
                for place in range(first, last):
                    episode = lent_structure(episodes[place])
                    _go_on(episode, 0 if are_new else actions[place], are_new, scratch)
        if own == 0:
            return reaches(counters, IDLE, taken.size - 1)
        take_share(counters, IDLE, 1)
        if not reaches(counters, STEPS, step + 1):
            return True


@borrowing
def _go_on(episode: Any, action: int, is_new: bool, scratch: Scratch) -> None:
    if is_new:
        _ask(episode, scratch)
        return
    if episode.shown.asked[HEAD] == WHEN:
        apply_when(episode, action)
    elif episode.shown.asked[HEAD] == HOW_FAST:
        apply_how_fast(episode, action)
    elif episode.shown.asked[HEAD] != OVER:
        apply_where(episode, action)
    if episode.shown.asked[HEAD] != OVER:
        _ask(episode, scratch)
    reward = episode.shown.reward
    reward[GIVEN], reward[PENDING] = reward[PENDING], 0.0


@borrowing
def _ask(episode: Any, scratch: Scratch) -> None:
    """Advance to the agent's next decision, and show its candidates; or to the end."""
    asked = episode.shown.asked
    while True:
        head, job = WHERE, asked[DUE]
        if job == NOWHERE:
            head, job = _next_asked(episode.run)
        asked[HEAD], asked[JOB], asked[CANDIDATES], asked[DUE] = head, job, 0, NOWHERE
        asked[CAPPED] = asked[DOMAIN] = NOWHERE
        if head == OVER:
            break
        if head == HOW_FAST:
            asked[CANDIDATES] = _ask_how_fast(episode, job)
        elif head == WHEN:
            asked[CANDIDATES] = _ask_when(episode, job)
        elif episode.run.terms.discipline == OLDEST_FIT:
            asked[CANDIDATES] = _ask_where(episode, job, scratch)
        else:
            asked[HEAD] = WHERE
            if head == IN_TURN or asked[WORKER] > 0:
                asked[CANDIDATES] = _ask_in_turn(episode, job, scratch)
            else:
                join(episode.run.queue, job)
        if asked[CANDIDATES] > 1:
            break
    mark(episode.shown.is_choice, asked[CANDIDATES])
    _credit(episode)
    if asked[HEAD] == OVER:
        _end(episode)


@borrowing
def _next_asked(run: Run) -> tuple[int, int]:
    """Advance to the next decision; return its head and its job or node."""
    return next_plain(run) if run.is_plain else next_asked(run)


@borrowing
def _ask_how_fast(episode: Any, which: int) -> int:
    """Show the power caps of a node's domain, 2 · node + domain, and return their number."""
    asked, domain, node = episode.shown.asked, which % 2, which // 2
    asked[JOB], asked[CAPPED], asked[DOMAIN] = NOWHERE, node, domain
    observe_power_caps(episode, domain, node, episode.run.events.now_s[0])
    return POWER_CAPS.size


@borrowing
def _ask_when(episode: Any, job: int) -> int:
    """Show a job's starts, and return their number; return 0 if rules plan the job.

    If the policy may suspend jobs, rules plan all jobs that can be suspended.
    """
    run, now_s, terms = episode.run, episode.run.events.now_s[0], episode.run.terms
    count = starts_between(now_s, run.estimates.latest_start_s[job], terms)
    may_pause = terms.may_suspend and run.jobs.save_every_s[job] < np.inf
    if episode.asks_when and count > 1 and not may_pause:
        observe_starts(episode, job, now_s, count)
        return count
    planned_s = plan_start(job, now_s, run) if run.is_plain else plan_by_rule(job, now_s, run)
    episode.shown.asked[DUE] = due_or_put_off(job, now_s, planned_s, run.events.starts)
    return 0


@borrowing
def _ask_where(episode: Any, job: int, scratch: Scratch) -> int:
    """Show the nodes with room for a job, and return their number; 0 if there is no decision."""
    run, jobs, cluster = episode.run, episode.run.jobs, episode.run.cluster
    several = jobs.workers[job] > 1.0 and episode.shown.asked[WORKER] == 0
    want(episode, job)
    if not episode.asks_where or (several and not all_fit(job, jobs, run.recorded, cluster)):
        place_by_rule(job, run.events.now_s[0], run)
        return 0
    count = search(
        cluster, jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job],
        episode.most_nodes, run.terms.goes_on,
    )  # fmt: skip
    if count == 0:
        if not start_with_fewer(episode, job):
            wait(job, run)
        return 0
    return _choice_of(episode, job, count, scratch)


@fast
def _ask_in_turn(episode: Any, job: int, scratch: Scratch) -> int:
    """Do the same as `_ask_where` for a job whose turn has come; if it does not start, it waits."""
    run, turns = episode.run, episode.run.queue.turns
    want(episode, job)
    now_s, reserved = run.events.now_s[0], reserved_in(turns)
    count = search_allowed(job, now_s, reserved, episode.most_nodes, run)
    if count <= 0:
        if not start_with_fewer(episode, job) and count == 0:
            refuse(job, run.jobs, turns.refused)
        return 0
    return _choice_of(episode, job, count, scratch)


@borrowing
def _choice_of(episode: Any, job: int, count: int, scratch: Scratch) -> int:
    """Show the nodes that a search has found; return 0 after assigning the only one at once."""
    if count > 1:
        observe_nodes(episode, job, episode.run.events.now_s[0], count, scratch)
        return count
    give_node(episode, job, episode.run.cluster.found[0])
    return 0


@fast
def _end(episode: Any) -> None:
    hide(episode.shown)
    _settle(episode)


@borrowing
def _credit(episode: Any) -> None:
    """Add the reward of all jobs placed since the last call.

    A job that may be suspended gets the reward of its planned run segment; one that has been
    suspended since gets none now. The end of the episode corrects both.
    """
    recorded, accounts, reward = episode.run.recorded, episode.accounts, episode.shown.reward
    placings, worker, job_before = recorded.placings, 0, NOWHERE
    for row in range(1, int(placings[0, 0]) + 1):
        job = int(placings[row, 0])
        worker = (worker + 1) % workers_of(job, recorded) if job == job_before else 0
        job_before = job
        if recorded.node[job] == NOWHERE:
            continue
        until_s, penalty = recorded.end_s[job], 0.0
        if recorded.progress.shape[1] > 0:
            until_s = min(until_s, recorded.progress[PAUSE_AT_S, job])
        if worker == 0 and until_s == recorded.end_s[job]:
            penalty = _penalty_of(until_s, accounts.deadline_s[job])
        placing = WorkerPlacement(job, node_of(job, worker, recorded), until_s, placings[row, 1])
        taken = taken_by_job(placing, episode.run, accounts.grid)
        value = _reward_of(taken.cost, taken.carbon_g, penalty, accounts.shares)
        if np.isnan(value):  # the grid lacks data, which the end of the episode reports
            value = 0.0
        accounts.credits[job] += value
        reward[PENDING] += value
        reward[IN_ALL] += value
    placings[0, 0] = 0.0


@fast
def _settle(episode: Any) -> None:
    """Add the rewards that belong to no job: idle watts, and changes of nodes' loads since placing.

    If the fast bill does not cover all costs, Python adds them.
    """
    run, accounts, reward = episode.run, episode.accounts, episode.shown.reward
    if not accounts.has_fast_bill:
        return
    until_s, penalty = accounts.least_until_s, 0.0
    for job in range(run.jobs.arrival_s.size):
        until_s = max(until_s, run.recorded.end_s[job])
        penalty += _penalty_of(run.recorded.end_s[job], accounts.deadline_s[job])
    taken = taken_in_all(run, accounts, until_s)
    whole = _reward_of(taken.cost, taken.carbon_g, penalty, accounts.shares)
    reward[PENDING] += whole - reward[IN_ALL]
    reward[IN_ALL] = whole
