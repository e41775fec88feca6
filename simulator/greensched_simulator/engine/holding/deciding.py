"""Which jobs are held and when each starts, by the kernel that the operator calls too."""

import numpy as np

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.compiling.compiled import compiled, fast, inlined
from greensched_policies.costs import quiet_spans
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.costs.slot_window import MOST_IN_SLOTS
from greensched_policies.kernel.planning import (
    Basis,
    Many,
    free_kept,
    pending_work_of,
    see,
    starts_of,
    stays,
    take,
    take_soonest,
)
from greensched_policies.library import functions as rows
from greensched_policies.planning import held_start
from greensched_simulator.arrays.heaps import job_at, push, restore, size_of
from greensched_simulator.engine.holding.budgets import (
    budget_opens_s,
    count_as_now,
    earliest_start_s,
    note_amounts,
)
from greensched_simulator.engine.holding.hold import (
    HELD,
    Hold,
    basis_of,
    is_pausable,
    many_of,
    slot_begin_s,
)
from greensched_simulator.engine.holding.learned import costs_of
from greensched_simulator.engine.holding.present_plan import (
    count_overdue,
    give_room_back,
    has_kept_room,
    held_cores,
    note_room,
    plan_what_runs,
)
from greensched_simulator.engine.holding.slots import held_in_slots
from greensched_simulator.engine.run import NO_JOB, Run

_release_s = compiled(held_start.release_s, inlined)
_after_quiet = compiled(quiet_spans.after_quiet, inlined)
_by_worth = compiled(held_start.by_worth)
_mean_busy_share = compiled(held_start.mean_busy_share)
_within_share = compiled(held_start.within_share)


@fast
def holds(job: int, now_s: float, run: Run, hold: Hold) -> bool:
    """Plan a job that has just arrived; return whether it is held, else it starts now."""
    if hold.terms.may_wait[job] == 0:
        return False
    begin_s = slot_begin_s(now_s, run)
    count_overdue(begin_s, run, hold)
    cores_held = held_cores(run, hold)
    if not choose_and_keep(job, begin_s, run, hold):
        return False
    start_s = start_of(job, now_s, run, hold)
    jobs, starts_now = np.array([job]), np.array([np.int64(start_s <= now_s)])
    if not _may_be_held(jobs, starts_now, cores_held, run, hold)[1][0]:
        give_room_back(job, now_s, run)
        hold.asked[rows.AT_ARRIVAL_G, job] = np.inf  # no plan of it is ever written
        return False
    note_amounts(job, start_s, run, hold)
    if start_s <= now_s:
        return False
    hold.is_held[job] = 1
    hold.counts[HELD] += 1
    put_held(job, start_s, run, hold)
    return True


@fast
def stays_held(job: int, now_s: float, run: Run, hold: Hold) -> bool:
    """Return whether a held job, whose planned start has come, waits on: there is no room for it.

    It is then planned again. At its latest start it never waits on.
    """
    waits = hold.is_held[job] == 1 and hold.asked[rows.WAITS_FOR_ROOM, job] != 0.0
    if not waits or now_s >= hold.asked[rows.LATEST_S, job]:
        return False
    begin_s = slot_begin_s(now_s, run)
    count_overdue(begin_s, run, hold)
    if has_kept_room(job, begin_s, run, hold):
        return False
    give_room_back(job, now_s, run)
    if not choose_and_keep(job, begin_s, run, hold):
        return False
    start_s = start_of(job, now_s, run, hold)
    note_amounts(job, start_s, run, hold)
    if start_s > now_s:
        put_held(job, start_s, run, hold)
    return start_s > now_s


@fast
def replan_held(now_s: float, is_whole: bool, run: Run, hold: Hold) -> Integers:
    """Plan held jobs again; return the ones that start now, in their order.

    `is_whole`: all of them, else those whose room is gone, and those that could run earlier.
    """
    begin_s, jobs = slot_begin_s(now_s, run), _held_jobs(run, hold)
    plan_what_runs(begin_s, run, hold)
    _note_busy(begin_s, now_s, run, hold)
    _plan_what_queues(begin_s, run, hold)
    _keep_others(run, hold)
    jobs = jobs[np.argsort(hold.asked[rows.LATEST_S][jobs], kind="mergesort")]
    starts_s = _starts_again(jobs, now_s, is_whole, run, hold)
    starts_now = (starts_s <= now_s).astype(np.int64)
    order, may_be_held = _may_be_held(jobs, starts_now, 0.0, run, hold)
    count, released = 0, np.empty(jobs.size, np.int64)
    for is_allowed in range(2):  # first what exceeds the share
        for place in order:
            if may_be_held[place] == is_allowed and (starts_now[place] or not is_allowed):
                if not is_allowed:
                    give_room_back(jobs[place], now_s, run)
                    count_as_now(jobs[place], hold)
                released[count] = jobs[place]
                count += 1
    for place in order:
        if may_be_held[place]:
            note_amounts(jobs[place], starts_s[place], run, hold)
        if may_be_held[place] and not starts_now[place]:
            put_held(jobs[place], starts_s[place], run, hold)
    return released[:count]


@fast
def _starts_again(jobs: Integers, now_s: float, is_whole: bool, run: Run, hold: Hold) -> Floats:
    """Return the starts of held jobs, [N], planned anew or kept: see `replan_held`.

    Those that may be paused come first, and are always planned anew.
    """
    begin_s = slot_begin_s(now_s, run)
    basis, many = basis_of(begin_s, run, hold), many_of(run, hold)
    starts_s, has_kept = run.recorded.planned_s[jobs], np.zeros(jobs.size, np.bool_)
    opens_s, in_slots = budget_opens_s(now_s, hold), np.zeros(jobs.size, np.bool_)
    asking = 0
    for place in range(jobs.size):
        asking += is_pausable(jobs[place], hold)
        if asking <= MOST_IN_SLOTS and held_in_slots(jobs[place], begin_s, run, hold):
            in_slots[place] = True
            starts_s[place] = start_of(jobs[place], now_s, run, hold)
    for place in range(jobs.size):
        may_stay = is_whole and not in_slots[place]
        if may_stay and starts_s[place] > earliest_start_s(jobs[place], now_s, opens_s, hold):
            has_kept[place] = stays(basis, many, jobs[place])
    for place in range(jobs.size):
        if has_kept[place]:
            free_kept(basis, many, jobs[place])
        after_s = earliest_start_s(jobs[place], now_s, opens_s, hold)
        if in_slots[place]:
            continue
        if is_whole or starts_s[place] <= after_s or not stays(basis, many, jobs[place]):
            choose_one_piece(jobs[place], begin_s, run, hold)
            starts_s[place] = start_of(jobs[place], now_s, run, hold)
    return starts_s


@fast
def _note_busy(begin_s: float, now_s: float, run: Run, hold: Hold) -> None:
    """Note the share of cores that run jobs now; the plan contains nothing else yet."""
    plan, busy = run.plan, 0.0
    slot = min(int(begin_s / run.terms.slot_s), plan.cores.shape[1] - 1)
    for zone in range(plan.cores.shape[0]):
        busy += plan.cores[zone, slot]
    busy /= plan.capacity.sum()
    hold.busy[0] = _mean_busy_share(hold.busy[0], busy, 0.0, hold.busy[1], now_s)
    hold.busy[1] = now_s


@fast
def _held_jobs(run: Run, hold: Hold) -> Integers:
    """Return the held jobs in the order of their arrival."""
    starts, found, count = run.events.starts, np.empty(hold.counts[HELD], np.int64), 0
    for place in range(size_of(starts)):
        job = job_at(starts, place)
        if job < hold.is_held.size and hold.is_held[job] == 1:
            found[count] = job
            count += 1
    return np.sort(found[:count])


@fast
def let_go(job: int, hold: Hold) -> bool:
    """Release a job if it is held; return whether it was."""
    if hold.is_held[job] == 0:
        return False
    hold.is_held[job] = 0
    hold.counts[HELD] -= 1
    return True


@fast
def _plan_what_queues(begin_s: float, run: Run, hold: Hold) -> None:
    """Keep room for the jobs that wait for a node, each as soon as there is room for it."""
    basis, many, behind = basis_of(begin_s, run, hold), many_of(run, hold), run.waiting.behind
    job = behind[behind.size - 1]
    while job != NO_JOB:
        _keep_soonest(job, basis, many, run, hold)
        job = behind[job]
    for place in range(run.queue.length[0]):
        _keep_soonest(run.queue.jobs[place], basis, many, run, hold)


@fast
def _keep_soonest(job: int, basis: Basis, many: Many, run: Run, hold: Hold) -> None:
    """Keep room for a queued job; not for one that was never planned."""
    if run.recorded.kept_cores[job] + run.recorded.kept_gpus[job] == 0.0:
        return
    latest_s = hold.asked[rows.LATEST_S, job]
    hold.asked[rows.LATEST_S, job] = np.inf
    take_soonest(basis, many, job, hold.found)
    hold.asked[rows.LATEST_S, job] = latest_s
    if hold.found[rows.WHY, job] != rows.NO_ZONE:
        note_room(job, basis.now_s, run, hold)


@fast
def choose_and_keep(job: int, begin_s: float, run: Run, hold: Hold) -> bool:
    """Choose a job's start, or slots, and keep its room in the plan; return False if no node can"""
    return held_in_slots(job, begin_s, run, hold) or choose_one_piece(job, begin_s, run, hold)


@fast
def choose_one_piece(job: int, begin_s: float, run: Run, hold: Hold) -> bool:
    """Choose the start of a job that runs in one piece, and keep its room in the plan."""
    basis, many = basis_of(begin_s, run, hold), many_of(run, hold)
    opens_s = budget_opens_s(begin_s, hold)
    hold.asked[rows.FROM_S, job] = earliest_start_s(job, begin_s, opens_s, hold)
    count = starts_of(basis, many, job)
    seen, cost = see(basis, many, job, pending_work_of(basis, many, job), count), np.zeros(count)
    if count > 1:
        cost = costs_of(job, seen.columns, run.estimates.runtime_s[job], run, hold)[0]
    take(basis, many, job, seen, cost, hold.found)
    if hold.found[rows.WHY, job] == rows.NO_ZONE:
        return False
    note_room(job, begin_s, run, hold)
    return True


@inlined
def start_of(job: int, now_s: float, run: Run, hold: Hold) -> float:
    """Return when a job with a chosen start is released; note the grams of a run on arrival."""
    asked, found, terms = hold.asked, hold.found, hold.terms
    if np.isinf(asked[rows.AT_ARRIVAL_G, job]):
        zone = int(found[rows.ZONE_NOW, job])
        run_j = terms.power_w[job, zone] * run.estimates.runtime_s[job, zone]
        run_j *= found[rows.MERIT_NOW, job]
        grams = found[rows.CARBON_NOW, job] * run_j / JOULES_PER_KWH
        asked[rows.AT_ARRIVAL_G, job] = np.inf if np.isnan(grams) else grams
    chosen_s = slot_begin_s(now_s, run) + found[rows.PLACE, job] * run.terms.slot_s
    kept_s = np.rint(run.recorded.planned_s[job])  # written on objects in whole seconds
    start_s = _release_s(chosen_s, kept_s, terms.jitter_s[job], now_s, run.terms.slot_s)
    start_s = max(start_s, earliest_start_s(job, now_s, budget_opens_s(now_s, hold), hold))
    start_s = _after_quiet(max(start_s, now_s), terms.quiet_s[0, 0], terms.quiet_s[1, 0])
    return float(min(start_s, asked[rows.LATEST_S, job]))


@fast
def _may_be_held(
    jobs: Integers, starts_now: Integers, cores_held: float, run: Run, hold: Hold
) -> tuple[Integers, Integers]:
    """Return the order in which jobs take their part of the held share, and 1 for those that may.

    All were planned before, or none: then `cores_held` are those of the others.
    """
    saving, latest_s = hold.found[rows.SAVING][jobs], hold.asked[rows.LATEST_S][jobs]
    order = _by_worth(np.zeros(jobs.size, np.int64), saving, latest_s)
    cores = run.recorded.kept_cores[jobs]
    most_cores = np.full(jobs.size, hold.terms.held_share * run.plan.capacity.sum())
    return order, _within_share(order, cores, most_cores, starts_now, cores_held)


@fast
def _keep_others(run: Run, hold: Hold) -> None:
    """Remove the held jobs from the queued starts."""
    starts, kept = run.events.starts, 0
    for place in range(size_of(starts)):
        job = job_at(starts, place)
        if job == hold.is_held.size or hold.is_held[job] == 0:
            starts[kept + 1] = starts[place + 1]
            kept += 1
    starts[0, 0] = kept
    restore(starts)


@inlined
def put_held(job: int, start_s: float, run: Run, hold: Hold) -> None:
    """Let a held job start later."""
    hold.asked[rows.KEPT_S, job] = np.rint(start_s) - hold.terms.jitter_s[job]
    run.recorded.planned_s[job] = start_s
    push(run.events.starts, start_s, job)
