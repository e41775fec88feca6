"""Suspending and resuming jobs: what happens when a planned pause is due."""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast
from greensched_policies.kernel.plan import keep
from greensched_simulator.arrays.heaps import push
from greensched_simulator.engine.execution.runs import (
    Runs,
    choose_runs,
    clear_agenda,
    put_on_agenda,
    restarting,
)
from greensched_simulator.engine.execution.workers import (
    all_cores,
    node_of,
    other_asleep_s,
    room_for,
    scales,
    throughput_of,
    workers_of,
)
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.progress import (
    FULL_SPEED,
    LEFT_S,
    PAUSE_AT_S,
    RESTARTS,
    RESUME_AT_S,
    RESUME_LEFT_S,
    STOP_S,
    WANTED,
    ask_to_stop,
    end_s,
    expected_left_s,
    settle,
    until_s,
)


@fast
def goes_on(job: int, now_s: float, run: Run) -> bool:
    """Return whether a running job goes on; if not, it has ended or stops now.

    For a job that goes on, plan its remaining work again with the current forecast.
    """
    jobs, recorded, slot_s = run.jobs, run.recorded, run.terms.slot_s
    done, node = recorded.progress, recorded.node[job]
    if recorded.end_s[job] <= now_s or done[STOP_S, job] > 0.0:
        return False
    settle(job, now_s, done)
    kept_s, zone = (recorded.kept_from_s[job], recorded.kept_until_s[job]), run.cluster.zone[node]
    keep(run.plan, zone, slot_s, kept_s[0], kept_s[1], -recorded.kept_cores[job])
    clear_agenda(job, run)
    done[PAUSE_AT_S, job] = np.inf
    runs = choose_runs(job, now_s, zone, run)
    begin_s = now_s + slot_s * np.argmax(runs.workers > 0) if runs.zone != NOWHERE else now_s
    if begin_s > now_s or is_to_rescale(job, runs, run):
        _stop_until(job, begin_s, now_s, run)
    if runs.zone != NOWHERE and (begin_s == now_s or done[STOP_S, job] > 0.0):
        done[RESUME_AT_S, job] = begin_s
        put_on_agenda(job, now_s, runs, run)
        if done[STOP_S, job] == 0.0 and workers_of(job, recorded) < done[WANTED, job]:
            done[PAUSE_AT_S, job] = now_s + slot_s  # in a slot there may be room for all
    else:
        keep_on(job, now_s, run)
    recorded.end_s[job] = end_s(job, jobs, done)
    push(run.events.ends, until_s(job, jobs, done), job)
    return True


@borrowing
def _stop_until(job: int, begin_s: float, now_s: float, run: Run) -> None:
    """Stop a running job when its work is next saved, unless its pause would be over by then."""
    jobs, recorded, done = run.jobs, run.recorded, run.recorded.progress
    if ask_to_stop(job, throughput_of(job, jobs, recorded, run.terms), jobs, done):
        stop_s = until_s(job, jobs, done)
        if stop_s >= begin_s > now_s:  # plan again when the work is saved
            done[STOP_S, job], done[PAUSE_AT_S, job] = 0.0, stop_s


@borrowing
def keep_on(job: int, now_s: float, run: Run) -> None:
    """Keep room in the plan for a job that goes on, until its expected end or its pause."""
    jobs, recorded, done = run.jobs, run.recorded, run.recorded.progress
    expected_s = now_s + expected_left_s(job, jobs, done) / done[FULL_SPEED, job]
    until = min(expected_s, done[PAUSE_AT_S, job])
    cores, zone = all_cores(job, jobs, recorded), run.cluster.zone[recorded.node[job]]
    keep(run.plan, zone, run.terms.slot_s, now_s, until, cores)
    recorded.kept_from_s[job], recorded.kept_until_s[job] = now_s, until
    recorded.kept_cores[job] = cores


@borrowing
def is_to_rescale(job: int, runs: Runs, run: Run) -> bool:
    """Return whether a job that goes on should restart with another number of workers.

    More workers count only if those that find room end it sooner, including the restart.
    """
    jobs, recorded, terms = run.jobs, run.recorded, run.terms
    if runs.zone == NOWHERE or not scales(job, jobs, terms):
        return False
    wanted, has = runs.workers[0], workers_of(job, recorded)
    if wanted <= has:
        return bool(wanted < has)
    curve, left_s = terms.scaling[int(jobs.scaling[job])], recorded.progress[LEFT_S, job]
    workers = has + room_for(job, wanted - has, jobs, run.cluster)
    again_s, _ = restarting(job, jobs, recorded)
    return bool(left_s / curve[has - 1] > again_s + left_s / curve[workers - 1])


@fast
def suspend(job: int, now_s: float, run: Run) -> None:
    """Record the run segment of a job that has left its nodes, and queue its resumption.

    If a GreenPolicy has paused it, its resumption is planned already.
    """
    done = run.recorded.progress
    note_run_segments(job, now_s, run)
    done[LEFT_S, job], done[STOP_S, job] = done[RESUME_LEFT_S, job], 0.0
    done[RESTARTS, job] += 1.0
    if not run.terms.may_pause:
        push(run.events.starts, max(done[RESUME_AT_S, job], now_s), job)


@fast
def note_run_segments(job: int, now_s: float, run: Run) -> None:
    """Record where the workers of a job that has just left its nodes ran, and clear its nodes.

    Its data now lies where its first worker ran, if it arrived there before the stop.
    """
    recorded, suspended = run.recorded, run.agenda.suspended
    placed_s, ready_s, home = recorded.placed_s[job], recorded.start_s[job], recorded.data_zone[job]
    start_s = min(ready_s, now_s)
    if ready_s <= now_s:
        recorded.data_zone[job] = run.cluster.zone[recorded.node[job]]
    node, asleep_s = recorded.node[job], recorded.node_asleep_s[job]
    suspended.append((job, node, placed_s, asleep_s, start_s, now_s, 0, home, ready_s))
    for worker in range(1, workers_of(job, recorded)):
        node, asleep_s = node_of(job, worker, recorded), other_asleep_s(job, worker, recorded)
        suspended.append((job, node, placed_s, asleep_s, start_s, now_s, worker, home, ready_s))
    recorded.node[job] = NOWHERE
    recorded.workers[job] = int(run.jobs.workers[job])
    for times_s in (recorded.placed_s, recorded.node_asleep_s, recorded.start_s, recorded.end_s):
        times_s[job] = np.nan
