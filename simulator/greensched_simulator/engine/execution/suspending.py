"""Jobs that are suspended and resumed: what happens when a planned pause has come."""

import numpy as np

from greensched_simulator.arrays.grid_table import GridTable
from greensched_simulator.arrays.heaps import Heap, push
from greensched_simulator.arrays.jobs import Jobs
from greensched_simulator.compiling.compiled import borrowing, fast
from greensched_simulator.engine.execution.runs import (
    Agenda,
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
from greensched_simulator.engine.state.choices import NOWHERE, Rules, Terms
from greensched_simulator.engine.state.cluster import Cluster
from greensched_simulator.engine.state.job_estimates import Prospects
from greensched_simulator.engine.state.progress import (
    FULL_SPEED,
    LEFT_S,
    PAUSE_AT_S,
    RESTARTS,
    RESUME_AT_S,
    RESUME_S,
    STOP_S,
    WANTED,
    ask_to_stop,
    end_s,
    expected_left_s,
    settle,
    until_s,
)
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.engine.state.starts import Plan, keep


@fast
def goes_on(
    job: int,
    now_s: float,
    jobs: Jobs,
    prospects: Prospects,
    cluster: Cluster,
    recorded: Recorded,
    ends: Heap,
    grid: GridTable,
    plan: Plan,
    agenda: Agenda,
    terms: Terms,
    rules: Rules,
) -> bool:
    """Tell whether a running job goes on, which is then seen to; else it has ended, or stops now.

    Its planned pause may have come: what is left is planned anew, by what is forecast now.
    """
    done, node = recorded.progress, recorded.node[job]
    if recorded.end_s[job] <= now_s or done[STOP_S, job] > 0.0:
        return False
    settle(job, now_s, done)
    kept_s, zone = (recorded.kept_from_s[job], recorded.kept_until_s[job]), cluster.zone[node]
    keep(plan, zone, terms.slot_s, kept_s[0], kept_s[1], -recorded.kept_cores[job])
    clear_agenda(job, agenda, plan, terms)
    done[PAUSE_AT_S, job] = np.inf
    runs = choose_runs(job, now_s, zone, jobs, prospects, grid, plan, recorded, terms, rules)
    begin_s = now_s + terms.slot_s * np.argmax(runs.workers > 0) if runs.zone != NOWHERE else now_s
    if begin_s > now_s or is_to_rescale(job, runs, jobs, cluster, recorded, terms):
        _stop_until(job, begin_s, now_s, jobs, recorded, terms)
    if runs.zone != NOWHERE and (begin_s == now_s or done[STOP_S, job] > 0.0):
        done[RESUME_AT_S, job] = begin_s
        put_on_agenda(job, now_s, runs, jobs, agenda, recorded, plan, terms)
        if done[STOP_S, job] == 0.0 and workers_of(job, recorded) < done[WANTED, job]:
            done[PAUSE_AT_S, job] = now_s + terms.slot_s  # there may be room for all of them then
    else:
        keep_on(job, now_s, jobs, cluster, recorded, plan, terms)
    recorded.end_s[job] = end_s(job, jobs, done)
    push(ends, until_s(job, jobs, done), job)
    return True


@borrowing
def _stop_until(
    job: int, begin_s: float, now_s: float, jobs: Jobs, recorded: Recorded, terms: Terms
) -> None:
    """Have a running job stop when its work is saved; not for a pause that would be over then."""
    done = recorded.progress
    if ask_to_stop(job, throughput_of(job, jobs, recorded, terms), jobs, done):
        stop_s = until_s(job, jobs, done)
        if stop_s >= begin_s > now_s:  # look again when all is saved
            done[STOP_S, job], done[PAUSE_AT_S, job] = 0.0, stop_s


@borrowing
def keep_on(
    job: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    plan: Plan,
    terms: Terms,
) -> None:
    """Keep room for a running job that goes on: as long as it is expected to, or to its pause."""
    node, done = recorded.node[job], recorded.progress
    expected_s = now_s + expected_left_s(job, jobs, done) / done[FULL_SPEED, job]
    until = min(expected_s, done[PAUSE_AT_S, job])
    cores = all_cores(job, jobs, recorded)
    keep(plan, cluster.zone[node], terms.slot_s, now_s, until, cores)
    recorded.kept_from_s[job], recorded.kept_until_s[job] = now_s, until
    recorded.kept_cores[job] = cores


@borrowing
def is_to_rescale(
    job: int, runs: Runs, jobs: Jobs, cluster: Cluster, recorded: Recorded, terms: Terms
) -> bool:
    """Tell whether a job that runs on is to have other workers.

    More only if those that find room end it sooner, the restart included.
    """
    if runs.zone == NOWHERE or not scales(job, jobs, terms):
        return False
    wanted, has = runs.workers[0], workers_of(job, recorded)
    if wanted <= has:
        return bool(wanted < has)
    curve, left_s = terms.scaling[int(jobs.scaling[job])], recorded.progress[LEFT_S, job]
    workers = has + room_for(job, wanted - has, jobs, cluster)
    again_s, _ = restarting(job, jobs, recorded)
    return bool(left_s / curve[has - 1] > again_s + left_s / curve[workers - 1])


@fast
def suspend(
    job: int,
    now_s: float,
    jobs: Jobs,
    cluster: Cluster,
    recorded: Recorded,
    starts: Heap,
    agenda: Agenda,
) -> None:
    """Note the stretch of a job that has left its node, and when it is to go on."""
    done = recorded.progress
    note_stretches(job, now_s, jobs, cluster, recorded, agenda)
    done[LEFT_S, job], done[STOP_S, job] = done[RESUME_S, job], 0.0
    done[RESTARTS, job] += 1.0
    push(starts, max(done[RESUME_AT_S, job], now_s), job)


@fast
def note_stretches(
    job: int, now_s: float, jobs: Jobs, cluster: Cluster, recorded: Recorded, agenda: Agenda
) -> None:
    """Note where all workers of a job ran that has just left its nodes, and that it has none.

    Its data now lies where its first worker ran, if it got there before that was stopped.
    """
    placed_s, ready_s, home = recorded.placed_s[job], recorded.start_s[job], recorded.data_zone[job]
    start_s = min(ready_s, now_s)
    if ready_s <= now_s:
        recorded.data_zone[job] = cluster.zone[recorded.node[job]]
    node, asleep_s = recorded.node[job], recorded.node_asleep_s[job]
    agenda.suspended.append((job, node, placed_s, asleep_s, start_s, now_s, 0, home, ready_s))
    for worker in range(1, workers_of(job, recorded)):
        node, asleep_s = node_of(job, worker, recorded), other_asleep_s(job, worker, recorded)
        agenda.suspended.append(
            (job, node, placed_s, asleep_s, start_s, now_s, worker, home, ready_s)
        )
    recorded.node[job] = NOWHERE
    recorded.workers[job] = int(jobs.workers[job])
    for times_s in (recorded.placed_s, recorded.node_asleep_s, recorded.start_s, recorded.end_s):
        times_s[job] = np.nan
