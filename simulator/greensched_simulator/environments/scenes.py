"""A run that stops wherever an agent is to decide, and goes on with its answer: compiled.

It is the engine's own loop with the same functions behind it; what the agent is not asked, rules of
the catalogue answer, and they also stand in for answers that name no candidate. Whoever has but one
choice is not asked.

Of a job of several workers the agent is asked worker by worker, as the extender is pod by pod: each
sees the room that those before it leave. They start together. In a queue with an order it is asked
of each job whose turn has come.
"""

from typing import Any

import numpy as np

from greensched_policies.cost import Floats, Integers
from greensched_policies.reward import penalty_of, reward_of
from greensched_policies.slot_observation import encode_when
from greensched_policies.slots import SlotColumns
from greensched_simulator.choices import (
    NOWHERE,
    Rules,
    search,
    see_candidates,
)
from greensched_simulator.compiled import compiled, fast, inlined
from greensched_simulator.deciding import (
    IN_TURN,
    OVER,
    WHEN,
    WHERE,
    due_or_put_off,
    keep_start,
    place_by_rule,
    plan_start,
)
from greensched_simulator.engine import next_asked, plan_by_rule
from greensched_simulator.environments.placing import give_node, go_without, want
from greensched_simulator.environments.scene_parts import (
    CANDIDATES,
    DUE,
    GIVEN,
    HEAD,
    IN_ALL,
    JOB,
    PENDING,
    WORKER,
    Bits,
    Parts,
    Shown,
)
from greensched_simulator.environments.sharing import take
from greensched_simulator.environments.tally import taken_by_job, taken_in_all
from greensched_simulator.observing import Singles
from greensched_simulator.plain_run import next_plain
from greensched_simulator.progress import PAUSE_AT_S
from greensched_simulator.queueing import OLDEST_FIT, join
from greensched_simulator.refused import refuse
from greensched_simulator.reservations import search_beside
from greensched_simulator.starts import Start, slot_columns, starts_between
from greensched_simulator.turns import Turns, reserved_in
from greensched_simulator.waiting import wait
from greensched_simulator.workers import (
    all_cores,
    all_fit,
    data_of,
    node_of,
    workers_of,
    workload_of,
)

_encode_when = compiled(encode_when)
_penalty_of = compiled(penalty_of, inlined)
_reward_of = compiled(reward_of, inlined)


@fast
def go_on(
    scenes: Any,
    actions: Integers,
    taken: Integers,
    at_a_time: int,
    last: int,
    are_new: bool,
    book: Any,
) -> None:
    """Let the scenes before `last` go on, each with its action, to what is next.

    `taken`, [1], is the first that no thread has taken yet: several may share the work, so many
    scenes at a time. The reward given is that of what came between; of a scene that is over, what
    is left of it. New scenes go on to their first question, without an action and a reward.
    """
    rules = book.rules
    while True:
        first = take(taken, at_a_time)
        if first >= last:
            return
        for place in range(first, min(first + at_a_time, last)):
            scene = scenes[place]
            goes_on = are_new or scene.shown.asked[HEAD] != OVER
            if goes_on and not are_new:
                _answer(scene, actions[place], rules)
            if goes_on:
                _ask(scene, rules)
            if not are_new:
                reward = scene.shown.reward
                reward[GIVEN], reward[PENDING] = reward[PENDING], 0.0


@fast
def _answer(scene: Parts, action: int, rules: Rules) -> None:
    """Do what the agent chose; what is no candidate counts as what the head's rule likes best."""
    asked, now_s = scene.shown.asked, scene.events.now_s[0]
    job, count, place = asked[JOB], asked[CANDIDATES], action
    asked[DUE] = NOWHERE
    if asked[HEAD] == WHEN:
        if place < 0 or place >= count:
            place = int(np.argmin(rules.when[0](_columns_of(scene.starts.columns, count))[0]))
        zone = scene.starts.zone[place]
        chosen = Start(
            now_s + place * scene.terms.slot_s, zone, scene.prospects.runtime_s[job, zone]
        )
        keep_start(job, chosen, scene.jobs, scene.recorded, scene.plan, scene.terms)
        asked[DUE] = due_or_put_off(job, now_s, chosen.start_s, scene.events.starts)
        return
    if place < 0 or place >= count:
        seen = scene.shown.nodes[:, :, :count].transpose((0, 2, 1))
        place = int(np.argmin(rules.where[0](seen, scene.shown.context)[0]))
    give_node(scene, job, scene.cluster.found[place])


@fast
def _columns_of(table: Floats, count: int) -> SlotColumns:
    """Return the first so many starts of a table [8,S] as a when rule takes them, [1,count]."""
    shape = (1, count)
    return SlotColumns(
        table[0, :count].reshape(shape), table[1, :count].reshape(shape),
        table[2, :count].reshape(shape), table[3, :count].reshape(shape),
        table[4, :count].reshape(shape), table[5, :count].reshape(shape),
        table[6, :count].reshape(shape), table[7, :count].reshape(shape),
    )  # fmt: skip


@fast
def _ask(scene: Any, rules: Rules) -> None:
    """Go on until the agent has a choice, and show it; or to the end."""
    asked = scene.shown.asked
    while True:
        head, job = WHERE, asked[DUE]
        if job == NOWHERE:
            head, job = _next_asked(scene, rules)
        asked[HEAD], asked[JOB], asked[CANDIDATES], asked[DUE] = head, job, 0, NOWHERE
        if head == OVER:
            break
        if scene.terms.discipline != OLDEST_FIT and head != WHEN:
            asked[HEAD] = WHERE
            if head == IN_TURN or asked[WORKER] > 0:
                asked[CANDIDATES] = _ask_in_turn(scene, job, scene.aside.queue.turns)
            else:
                join(scene.aside.queue, job)
        elif head == WHERE:
            asked[CANDIDATES] = _ask_where(scene, job, rules)
        else:
            asked[CANDIDATES] = _ask_when(scene, job, rules)
        if asked[CANDIDATES] > 1:
            break
    _mark(scene.shown.is_choice, asked[CANDIDATES])
    _credit(scene)
    if asked[HEAD] == OVER:
        _hide(scene.shown)
        _settle(scene)


@fast
def _next_asked(scene: Any, rules: Rules) -> tuple[int, int]:
    """Let happen what asks for no start and no node; return what is asked next, of which job."""
    if scene.is_plain:
        return next_plain(
            scene.events, scene.waiting, scene.jobs, scene.cluster, scene.recorded, scene.grid,
            scene.plan, scene.terms, rules, scene.outages,
        )  # fmt: skip
    return next_asked(
        scene.events, scene.aside, scene.waiting, scene.jobs, scene.prospects, scene.cluster,
        scene.recorded, scene.grid, scene.plan, scene.terms, rules,
    )  # fmt: skip


@fast
def _ask_when(scene: Any, job: int, rules: Rules) -> int:
    """Show a job's starts, and return how many there are; else the rules have planned it: 0.

    Where there are pauses, rules plan all that can be suspended.
    """
    now_s, terms = scene.events.now_s[0], scene.terms
    count = starts_between(now_s, scene.prospects.latest_start_s[job], terms)
    may_pause = terms.may_suspend and scene.jobs.save_every_s[job] < np.inf
    if scene.asks_when and count > 1 and not may_pause:
        _show_starts(scene, job, now_s, count)
        return count
    scene.shown.asked[DUE] = due_or_put_off(
        job, now_s, _planned_s(scene, job, now_s, rules), scene.events.starts
    )
    return 0


@fast
def _planned_s(scene: Any, job: int, now_s: float, rules: Rules) -> float:
    if scene.is_plain:
        return plan_start(
            job, now_s, scene.jobs, scene.prospects, scene.grid, scene.plan, scene.recorded,
            scene.terms, rules,
        )  # fmt: skip
    return plan_by_rule(
        job, now_s, scene.jobs, scene.prospects, scene.grid, scene.plan, scene.aside.agenda,
        scene.recorded, scene.terms, rules,
    )  # fmt: skip


@fast
def _ask_where(scene: Parts, job: int, rules: Rules) -> int:
    """Show the nodes with room for a job, and return how many; else none is to be chosen: 0."""
    now_s, jobs, cluster, terms = scene.events.now_s[0], scene.jobs, scene.cluster, scene.terms
    several = jobs.workers[job] > 1.0 and scene.shown.asked[WORKER] == 0
    want(scene, job)
    if not scene.asks_where or (several and not all_fit(job, jobs, scene.recorded, cluster)):
        place_by_rule(
            job, now_s, scene.waiting, jobs, cluster, scene.recorded, scene.events.ends,
            scene.grid, scene.plan, terms, rules,
        )  # fmt: skip
        return 0
    count = search(
        cluster, jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job],
        scene.most_nodes, terms.goes_on,
    )  # fmt: skip
    if count > 1:
        _show_nodes(scene, job, now_s, count)
        return count
    if count == 1:
        give_node(scene, job, cluster.found[0])
    elif not go_without(scene, job):
        wait(job, scene.waiting, jobs)
    return 0


@fast
def _ask_in_turn(scene: Parts, job: int, turns: Turns) -> int:
    """As `_ask_where`, of a job whose turn has come in a queue: who does not start waits on."""
    now_s, jobs, cluster = scene.events.now_s[0], scene.jobs, scene.cluster
    want(scene, job)
    reserved = reserved_in(turns)
    count = search_beside(
        job, now_s, reserved, scene.most_nodes, jobs, cluster, scene.recorded, scene.terms
    )
    if count > 1:
        _show_nodes(scene, job, now_s, count)
        return count
    if count == 1:
        give_node(scene, job, cluster.found[0])
    elif not go_without(scene, job) and count == 0:
        refuse(job, jobs, turns.refused)
    return 0


@fast
def _show_nodes(scene: Parts, job: int, now_s: float, count: int) -> None:
    rows = scene.cluster.found[:count]
    workload = workload_of(job, scene.jobs, scene.recorded, scene.terms)
    data = data_of(job, scene.jobs, scene.recorded)
    features = scene.shown.nodes
    see_candidates(
        scene.cluster, rows, scene.grid, scene.terms, workload, data, now_s, True, features,
        scene.shown.context,
    )  # fmt: skip
    features[0, :, count:] = 0.0


@fast
def _show_starts(scene: Parts, job: int, now_s: float, count: int) -> None:
    data = data_of(job, scene.jobs, scene.recorded)
    columns, zone = slot_columns(
        scene.grid, scene.plan, scene.terms, now_s, scene.prospects.runtime_s[job], count,
        all_cores(job, scene.jobs, scene.recorded),
        data, scene.prospects.run_j[job],
    )  # fmt: skip
    table = scene.starts.columns
    table[0, :count], table[1, :count] = columns.wait_s[0], columns.runtime_s[0]
    table[2, :count], table[3, :count] = columns.carbon_at_start[0], columns.carbon_over_run[0]
    table[4, :count], table[5, :count] = columns.price_at_start[0], columns.price_over_run[0]
    table[6, :count] = columns.weighted_over_run[0]
    table[7, :count] = columns.busiest_over_run[0]
    scene.starts.zone[:count] = zone
    workload = workload_of(job, scene.jobs, scene.recorded, scene.terms)
    seen = _encode_when(columns, workload, scene.terms.weights, scene.accounts.mean_memory)
    _copy(seen.slots.transpose((0, 2, 1))[0], scene.shown.slots[0])
    scene.shown.context[:] = seen.context


@inlined
def _copy(seen: Singles, shown: Singles) -> None:
    """Copy features [K,count] into [K,N], 0 behind them."""
    count, whole = seen.shape[1], shown.shape[1]
    for row in range(seen.shape[0]):
        for place in range(count):
            shown[row, place] = seen[row, place]
        for place in range(count, whole):
            shown[row, place] = 0.0


@inlined
def _mark(is_choice: Bits, count: int) -> None:
    for place in range(is_choice.size):
        is_choice[place] = 1 if place < count else 0


@inlined
def _hide(shown: Shown) -> None:
    """Leave nothing to be seen of an old question."""
    shown.nodes[:] = 0.0
    shown.slots[:] = 0.0
    shown.context[:] = 0.0


@fast
def _credit(scene: Parts) -> None:
    """Add the reward of all jobs that have been placed since this was called last.

    Who may be suspended gets that of its stretches as they are planned, and who has been since,
    nothing: the end tells.
    """
    placings, recorded, accounts = scene.recorded.placings, scene.recorded, scene.accounts
    reward, worker, job_before = scene.shown.reward, 0, NOWHERE
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
        taken = taken_by_job(
            job, node_of(job, worker, recorded), until_s, placings[row, 1], scene.jobs, recorded,
            scene.cluster, accounts.grid, scene.terms.model,
        )  # fmt: skip
        value = _reward_of(taken.cost, taken.carbon_g, penalty, accounts.shares)
        if np.isnan(value):  # the grid lacks data, which the end tells
            value = 0.0
        accounts.credits[job] += value
        reward[PENDING] += value
        reward[IN_ALL] += value
    placings[0, 0] = 0.0


@fast
def _settle(scene: Parts) -> None:
    """Add what is nobody's: idle watts, and how loads of nodes changed beside what was credited.

    Where the tally does not know all, Python adds it.
    """
    jobs, recorded, accounts, reward = (
        scene.jobs, scene.recorded, scene.accounts, scene.shown.reward,
    )  # fmt: skip
    if not accounts.is_tallied:
        return
    until_s, penalty = accounts.least_until_s, 0.0
    for job in range(jobs.arrival_s.size):
        until_s = max(until_s, recorded.end_s[job])
        penalty += _penalty_of(recorded.end_s[job], accounts.deadline_s[job])
    taken = taken_in_all(
        jobs, recorded, scene.cluster, accounts.machines, accounts.grid, scene.terms.model, until_s
    )
    whole = _reward_of(taken.cost, taken.carbon_g, penalty, accounts.shares)
    reward[PENDING] += whole - reward[IN_ALL]
    reward[IN_ALL] = whole
