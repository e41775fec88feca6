"""The slots in which a job that can be suspended runs, and their room in the zones' plan."""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.costs.cost import Integers
from greensched_policies.costs.pausing import PauseColumns, planned_slots
from greensched_policies.costs.scaling import scaled_plan, useful_workers
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.kernel.later_room import ALL_ROOM
from greensched_policies.kernel.plan import Plan, keep
from greensched_policies.kernel.starts import SLOT_COLUMNS, as_slots, complete_slots, watch_slots
from greensched_policies.library.functions import MOST_STARTS
from greensched_policies.library.grid_table import GridTable
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.moving import transfer_surcharges
from greensched_simulator.engine.execution.workers import all_cores, data_of, scales
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.progress import PAUSE_AT_S, RESTARTS, WANTED, expected_left_s
from greensched_simulator.engine.state.recorded import Recorded
from greensched_simulator.engine.state.starts import UnstartedJob
from greensched_simulator.engine.state.terms import RunConfig

_planned_slots = compiled(planned_slots)
_scaled_plan = compiled(scaled_plan)
_useful_workers = compiled(useful_workers)
_LEAST_S = 1e-9
_ROUNDING = 1e-9  # of a slot


class Runs(NamedTuple):
    """A job's plan: its workers in each slot from now on, and its zone."""

    workers: Integers  # [S]; 0: it does not run
    zone: int  # NOWHERE: the job is not planned slot by slot


@fast
def nothing_chosen() -> Runs:
    """Return the plan of a job that is not planned slot by slot."""
    return Runs(np.zeros(0, np.int64), NOWHERE)


@fast
def choose_runs(job: int, now_s: float, running_in: int, run: Run) -> Runs:
    """Return the cheapest slots in the best zone, by the when rule and the pause rule.

    `running_in` is the zone in which the job runs and may go on; NOWHERE if it waits. A job gets no
    slots if it may not wait, cannot be suspended, or does not run long enough.
    """
    jobs, estimates, recorded, terms = run.jobs, run.estimates, run.recorded, run.terms
    if scales(job, jobs, terms):
        return choose_sizes(job, now_s, running_in, run)
    is_running = running_in != NOWHERE
    share = expected_left_s(job, jobs, recorded.progress) / jobs.estimate_s[job]
    runtime_s = estimates.runtime_s[job] * share
    needed = np.ceil(np.where(np.isinf(runtime_s), 0.0, runtime_s) / terms.slot_s - _ROUNDING)
    spare = min(spare_slots(job, now_s, share, run), MOST_STARTS - int(needed.max()))
    if spare < 1 or (needed.max() < 2.0 and not is_running):
        return nothing_chosen()
    again_s, most = restarting(job, jobs, recorded)
    data, run_j = data_of(job, jobs, recorded), estimates.run_j[job] * share
    work = UnstartedJob(
        now_s, runtime_s, all_cores(job, jobs, recorded), data, run_j, 0.0, 0.0, ALL_ROOM
    )
    count = max(int(needed.max()), 1) + spare
    cost = run.rules.when[0](columns_by_zone(run.grid, run.plan, terms, work, count))
    restart_s, lead_s = again_s * estimates.slowest[job], estimates.lead_s[job]
    best, least = nothing_chosen(), np.inf
    for zone in range(runtime_s.size):
        if np.isinf(runtime_s[zone]) or (is_running and zone != running_in):
            continue
        seen = pause_seen(restart_s, runtime_s[zone], terms.slot_s)
        chosen, total = _planned_slots(
            cost[zone, : max(int(needed[zone]), 1) + spare], runtime_s[zone], terms.slot_s,
            restart_s + lead_s, run.rules.pause[0](seen)[0, 0], most, is_running,
        )  # fmt: skip
        if total < least or best.zone == NOWHERE:
            best, least = Runs(chosen * recorded.workers[job], zone), total
    return best


@fast
def choose_sizes(job: int, now_s: float, running_in: int, run: Run) -> Runs:
    """Return an elastic job's workers in each slot; see `choose_runs`.

    The plan assumes that all its nodes are the slowest that can take it. A job without a deadline
    gets no slots.
    """
    jobs, estimates, recorded, terms = run.jobs, run.estimates, run.recorded, run.terms
    left_s, lead_s = jobs.deadline_s[job] - now_s, estimates.lead_s[job]
    if np.isinf(left_s):
        return nothing_chosen()
    count = min(max(int((left_s - lead_s) / terms.slot_s + _ROUNDING), 1), MOST_STARTS)
    throughput, slowest = terms.scaling[int(jobs.scaling[job])], estimates.slowest[job]
    left = expected_left_s(job, jobs, recorded.progress)
    running = recorded.workers[job] if running_in != NOWHERE else 0
    sizes = max(_useful_workers(throughput), recorded.workers[job])
    runtime_s = left * slowest
    in_zone_s = np.where(np.isinf(estimates.runtime_s[job]), np.inf, runtime_s)
    again_s, most = restarting(job, jobs, recorded)
    data, run_j = data_of(job, jobs, recorded), estimates.run_j[job] * left / jobs.estimate_s[job]
    cost = np.full((in_zone_s.size, throughput.size, count), np.inf)
    for size in range(sizes):
        # Each worker fetches all data, and does a part of the work.
        own_j = run_j / throughput[size]
        work = UnstartedJob(
            now_s, in_zone_s, jobs.cpu_cores[job] * (size + 1), data, own_j, 0.0, 0.0, ALL_ROOM
        )
        slots = columns_by_zone(run.grid, run.plan, terms, work, count)
        cost[:, size, :] = run.rules.when[0](slots)
    best, least = nothing_chosen(), np.inf
    for zone in range(in_zone_s.size):
        if np.isinf(in_zone_s[zone]) or (running_in != NOWHERE and zone != running_in):
            continue
        workers, total = _scaled_plan(
            cost[zone], throughput, runtime_s, terms.slot_s, again_s * slowest + lead_s, most,
            running,
        )  # fmt: skip
        if total < least or best.zone == NOWHERE:
            best, least = Runs(workers, zone), total
    return best


@inlined
def restarting(job: int, jobs: JobArrays, recorded: Recorded) -> tuple[float, float]:
    """Return the seconds that each suspend and resume takes, and how many more are allowed."""
    again_s = jobs.startup_s[job]
    if jobs.save_every_s[job] == 0.0:  # else saving is a part of the runtime
        again_s += jobs.save_s[job]
    most = jobs.estimate_s[job] / max(again_s, _LEAST_S) - recorded.progress[RESTARTS, job]
    return again_s, most


@borrowing
def spare_slots(job: int, now_s: float, share: float, run: Run) -> int:
    """Return how many slots a job, of which `share` is left, may still wait; 0 without deadline."""
    jobs, estimates = run.jobs, run.estimates
    run_s = jobs.estimate_s[job] * estimates.slowest[job] * share
    spare = (jobs.deadline_s[job] - now_s - run_s - estimates.lead_s[job]) / run.terms.slot_s
    return int(np.floor(spare + _ROUNDING)) if 0.0 < spare < np.inf else 0


@fast
def pause_seen(restart_s: float, runtime_s: float, slot_s: float) -> PauseColumns:
    """Return what a pause rule sees of one job."""
    return PauseColumns(
        np.full((1, 1), restart_s), np.full((1, 1), runtime_s), np.full((1, 1), slot_s)
    )


@fast
def columns_by_zone(
    grid: GridTable, plan: Plan, terms: RunConfig, work: UnstartedJob, count: int
) -> SlotColumns:
    """Return what a when rule sees of the next slots, a row for each zone, [Z,S]."""
    surcharge = transfer_surcharges(terms.links, work.data, work.run_j)
    columns = np.empty((SLOT_COLUMNS, work.runtime_s.size, count))
    has_gaps = watch_slots(grid, plan, terms.slot_s, work, surcharge, columns)
    complete_slots(work, terms.slot_s, terms.weights, has_gaps, columns)
    return as_slots(columns)


@fast
def put_on_agenda(job: int, now_s: float, runs: Runs, run: Run) -> None:
    """Plan the run segments of a job and keep room for them.

    The record holds the first one; the agenda holds the others, in their order.
    """
    agenda, recorded, slot_s = run.agenda, run.recorded, run.terms.slot_s
    place, last, is_first = 0, NOWHERE, True
    while place < runs.workers.size:
        begin, workers = place, runs.workers[place]
        while place < runs.workers.size and runs.workers[place] == workers:
            place += 1
        if workers == 0:
            continue
        begin_s, end_s = now_s + begin * slot_s, now_s + place * slot_s
        cores = run.jobs.cpu_cores[job] * workers
        keep(run.plan, runs.zone, slot_s, begin_s, end_s, cores)
        if is_first:
            is_first, recorded.planned_zone[job] = False, runs.zone
            recorded.kept_from_s[job], recorded.kept_until_s[job] = begin_s, end_s
            recorded.kept_cores[job], recorded.progress[WANTED, job] = cores, workers
            continue
        if last == NOWHERE:
            agenda.first[job] = len(agenda.run_segments)
        else:
            before = agenda.run_segments[last]
            following = len(agenda.run_segments)
            agenda.run_segments[last] = (before[0], before[1], before[2], before[3], following)
        last = len(agenda.run_segments)
        agenda.run_segments.append((begin_s, end_s, runs.zone, cores, NOWHERE))
    is_whole = agenda.first[job] == NOWHERE
    recorded.progress[PAUSE_AT_S, job] = np.inf if is_whole else recorded.kept_until_s[job]


@fast
def clear_agenda(job: int, run: Run) -> None:
    """Free the room that the plan keeps for a job's run segments after the next one."""
    agenda = run.agenda
    place = agenda.first[job]
    agenda.first[job] = NOWHERE
    while place != NOWHERE:
        begin_s, end_s, zone, cores, place = agenda.run_segments[place]
        keep(run.plan, zone, run.terms.slot_s, begin_s, end_s, -cores)
