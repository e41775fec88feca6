"""Pauses running jobs that are better resumed later, as the operator's pauser does.

A paused job is held: it is planned again like others, with what is left of it.
"""

import numpy as np

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.compiling.compiled import compiled, fast, inlined
from greensched_policies.costs import quiet_spans
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.costs.slot_window import NOT_RUNNING
from greensched_policies.kernel.slot_choice import CARBON, MERIT, RUN_S, SlotChoice
from greensched_policies.library import functions as rows
from greensched_policies.planning import held_start, lateness, resuming
from greensched_simulator.arrays.heaps import job_at, restore, size_of
from greensched_simulator.engine.execution.running import add_part, parts_of
from greensched_simulator.engine.execution.workers import (
    all_cores,
    kept_until_of,
    node_of,
    throughput_of,
    workers_of,
)
from greensched_simulator.engine.holding.deciding import choose_one_piece, put_held, start_of
from greensched_simulator.engine.holding.hold import (
    DEADLINE_S,
    FROM_S,
    HELD,
    LEAST_PAUSE_S,
    LONGEST_S,
    MARGIN_S,
    MOST_RESTARTS,
    PAUSES,
    RESTART_S,
    RESUME_S,
    Hold,
    is_pausable,
    slot_begin_s,
)
from greensched_simulator.engine.holding.present_plan import give_room_back, held_cores
from greensched_simulator.engine.holding.slots import (
    Remaining,
    choose_for,
    held_in_slots,
    note_slots,
)
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.progress import (
    KNOWN_S,
    STOP_S,
    ask_to_stop,
    settle,
    until_s,
)

_done_work_s = compiled(resuming.done_work_s, inlined)
_left_work_s = compiled(resuming.left_work_s, inlined)
_resumed_run_s = compiled(resuming.resumed_run_s, inlined)
_restarts_left = compiled(resuming.restarts_left, inlined)
_spare_s = compiled(lateness.spare_s, inlined)
_after_quiet = compiled(quiet_spans.after_quiet, inlined)
_may_start = compiled(quiet_spans.may_start, inlined)
_fits_share = compiled(held_start.fits_share, inlined)


@fast
def pause_running(now_s: float, run: Run, hold: Hold) -> None:
    """Pause the running jobs that are better resumed later; those that must resume first come first

    All are chosen on one plan before any is paused and planned again.
    """
    if hold.terms.pauses.may_pause.size == 0:
        return
    jobs = _candidates(now_s, run, hold)
    cores_held, most_cores = held_cores(run, hold), hold.terms.held_share * run.plan.capacity.sum()
    chosen, count = np.empty(jobs.size, np.int64), 0
    for job in jobs:
        cores = all_cores(job, run.jobs, run.recorded)
        fits_share = _fits_share(cores_held + cores, most_cores)
        if fits_share and _is_better_paused(job, now_s, run, hold):
            cores_held += cores
            chosen[count] = job
            count += 1
    for job in chosen[:count]:
        give_room_back(job, now_s, run)
    if count > 0:
        _pause(chosen[:count], now_s, run, hold)


@fast
def _candidates(now_s: float, run: Run, hold: Hold) -> Integers:
    """Return the jobs that may be paused now, in the order of their latest resumptions."""
    ends, policy = run.events.ends, hold.terms.pauses
    found, latest_s, count = np.empty(size_of(ends), np.int64), np.empty(size_of(ends)), 0
    for place in range(size_of(ends)):
        job = job_at(ends, place)
        if not is_pausable(job, hold) or hold.is_held[job] == 1 or _zone_of(job, run) == NOWHERE:
            continue
        ran_s = now_s - run.recorded.start_s[job]
        if not (ran_s >= 0.0 and ran_s >= policy.least_run_s):
            continue
        done_s = _done_s(job, now_s, run, hold)
        last_s = _latest_resume_s(job, done_s, now_s, run, hold)
        if last_s >= now_s + policy.numbers[LEAST_PAUSE_S, job] and _can_stop(job, now_s, run):
            found[count], latest_s[count] = job, last_s
            count += 1
    by_number = np.argsort(found[:count], kind="mergesort")
    order = np.argsort(latest_s[by_number], kind="mergesort")
    return found[by_number][order]


@fast
def _zone_of(job: int, run: Run) -> int:
    """Return the zone in which all workers of a running job are; NOWHERE: in several."""
    cluster, recorded = run.cluster, run.recorded
    zone = cluster.zone[node_of(job, 0, recorded)]
    for worker in range(1, workers_of(job, recorded)):
        if cluster.zone[node_of(job, worker, recorded)] != zone:
            return NOWHERE
    return int(zone)


@fast
def _can_stop(job: int, now_s: float, run: Run) -> bool:
    """Return whether a job can save its work before it ends."""
    jobs, recorded, done = run.jobs, run.recorded, run.recorded.progress
    settle(job, now_s, done)
    can = ask_to_stop(job, throughput_of(job, jobs, recorded, run.terms), jobs, done)
    done[STOP_S, job] = 0.0
    return can


@fast
def _done_s(job: int, now_s: float, run: Run, hold: Hold) -> float:
    """Return how much of its estimate a running job has done, as the operator sees it."""
    policy, before_s = hold.terms.pauses, run.recorded.progress[KNOWN_S, job]
    starting_s = policy.numbers[RESUME_S, job] if hold.paused[PAUSES, job] > 0.0 else 0.0
    speed = run.jobs.estimate_s[job] / hold.whole_s[job, _zone_of(job, run)]
    return float(_done_work_s(before_s, now_s - run.recorded.start_s[job], speed, starting_s))


@fast
def _latest_resume_s(job: int, done_s: float, now_s: float, run: Run, hold: Hold) -> float:
    """Return when a job that is paused now must run again at the latest."""
    policy, whole_s = hold.terms.pauses, run.jobs.estimate_s[job]
    left_s = _left_work_s(whole_s, done_s, policy.numbers[RESUME_S, job])
    takes_s = _resumed_run_s(
        left_s, whole_s, policy.numbers[LONGEST_S, job], policy.numbers[MARGIN_S, job]
    )
    by_deadline_s = policy.numbers[DEADLINE_S, job] - takes_s
    return float(min(by_deadline_s, now_s + policy.longest_hold_s))


@fast
def _is_better_paused(job: int, now_s: float, run: Run, hold: Hold) -> bool:
    """Return whether a job is better resumed later; if so, keep room for that instead."""
    recorded, policy, begin_s = run.recorded, hold.terms.pauses, slot_begin_s(now_s, run)
    done_s = _done_s(job, now_s, run, hold)
    latest_s = _latest_resume_s(job, done_s, now_s, run, hold)
    from_s = min(now_s + policy.numbers[LEAST_PAUSE_S, job], latest_s)
    resume_s, whole_s = policy.numbers[RESUME_S, job], run.jobs.estimate_s[job]
    left_s = max(_left_work_s(whole_s, done_s, resume_s), 1.0)
    rest = Remaining(  # if it keeps running, it does not restart
        hold.whole_s[job] * (max(left_s - resume_s, 1.0) / whole_s), latest_s + resume_s, resume_s,
        _restarts_left(whole_s, resume_s, hold.paused[PAUSES, job] + 1.0) + 1.0,
        _zone_of(job, run), from_s, np.nan,
    )  # fmt: skip
    _add_running(job, begin_s, -1.0, run)
    choice = choose_for(job, begin_s, rest, run, hold)
    is_later, start_s = choice.zone != NOT_RUNNING, begin_s
    if is_later:
        start_s = begin_s + np.argmax(choice.chosen) * run.terms.slot_s
    quiet_s, slot_s = hold.terms.quiet_s, run.terms.slot_s
    is_allowed = _may_start(start_s, slot_s, start_s, quiet_s[0, 0], quiet_s[1, 0])
    if not is_later or start_s <= now_s or not from_s <= start_s <= latest_s or not is_allowed:
        _add_running(job, begin_s, 1.0, run)
        return False
    note_slots(job, begin_s, choice, run, hold)
    start_s = min(start_s + hold.terms.jitter_s[job], latest_s)
    start_s = _after_quiet(start_s, quiet_s[0, 0], quiet_s[1, 0])
    recorded.planned_s[job] = min(start_s, latest_s)
    hold.asked[rows.KEPT_S, job] = np.rint(recorded.planned_s[job]) - hold.terms.jitter_s[job]
    hold.asked[rows.AT_ARRIVAL_G, job] = _grams_now(job, choice, hold)
    return True


@inlined
def _grams_now(job: int, choice: SlotChoice, hold: Hold) -> float:
    """Return the grams of the rest of a job that goes on; infinity where they are not known."""
    now = choice.run_now
    run_j = hold.terms.power_w[job, choice.zone_now] * now[RUN_S] * now[MERIT]
    grams = now[CARBON] * run_j / JOULES_PER_KWH
    return np.inf if np.isnan(grams) else grams


@fast
def _add_running(job: int, begin_s: float, sign: float, run: Run) -> None:
    """Remove the room that the plan keeps for a running job, or add it again."""
    for part in range(parts_of(job, run)):
        ends_s = kept_until_of(job, part, run.recorded)
        if ends_s > begin_s:
            add_part(job, part, begin_s, ends_s, sign, run)


@fast
def _pause(jobs: Integers, now_s: float, run: Run, hold: Hold) -> None:
    """Hold running jobs, plan what is left of them, and let them stop when their work is saved."""
    begin_s, progress, ends = slot_begin_s(now_s, run), run.recorded.progress, run.events.ends
    for job in jobs:
        _note_rest(job, now_s, run, hold)
    jobs = jobs[np.argsort(hold.asked[rows.LATEST_S][jobs], kind="mergesort")]
    in_slots = np.zeros(jobs.size, np.bool_)
    for place in range(jobs.size):
        in_slots[place] = held_in_slots(jobs[place], begin_s, run, hold)
    for place in range(jobs.size):
        if not in_slots[place]:
            choose_one_piece(jobs[place], begin_s, run, hold)
    for job in jobs:
        put_held(job, start_of(job, now_s, run, hold), run, hold)
        ask_to_stop(job, throughput_of(job, run.jobs, run.recorded, run.terms), run.jobs, progress)
    for place in range(size_of(ends)):
        if progress[STOP_S, job_at(ends, place)] > 0.0:
            ends[place + 1, 0] = until_s(job_at(ends, place), run.jobs, progress)
    restore(ends)


@fast
def _note_rest(job: int, now_s: float, run: Run, hold: Hold) -> None:
    """Note what is left of a running job that is held from now on, and its new limits."""
    jobs, recorded, paused = run.jobs, run.recorded, hold.paused
    policy, whole_s = hold.terms.pauses, jobs.estimate_s[job]
    resume_s = policy.numbers[RESUME_S, job]
    # The operator writes whole seconds on objects.
    recorded.progress[KNOWN_S, job] = np.floor(_done_s(job, now_s, run, hold))
    done_s = recorded.progress[KNOWN_S, job]
    latest_s = _latest_resume_s(job, done_s, now_s, run, hold)
    paused[PAUSES, job] += 1.0
    paused[FROM_S, job] = min(now_s + policy.numbers[LEAST_PAUSE_S, job], latest_s)
    paused[RESTART_S, job] = resume_s
    paused[MOST_RESTARTS, job] = _restarts_left(whole_s, resume_s, paused[PAUSES, job])
    left_s = max(_left_work_s(whole_s, done_s, resume_s), 1.0)
    _set_rest(run.estimates.runtime_s[job], hold.whole_s[job], left_s / whole_s)
    hold.asked[rows.LATEST_S, job] = latest_s
    hold.asked[rows.SPARE_S, job] = _spare_s(latest_s - paused[FROM_S, job])
    hold.is_held[job] = 1
    hold.counts[HELD] += 1


@inlined
def _set_rest(runtime_s: Floats, whole_s: Floats, share: float) -> None:
    for zone in range(runtime_s.size):
        runtime_s[zone] = whole_s[zone] * share
