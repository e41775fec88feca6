"""The figures of a run: work done, energy, money and carbon, waits and slowdowns."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from greensched_policies.billing.accounting import PARTS, Bill, BillTotal, total_bill
from greensched_policies.encoding.reward import ROUNDING_S
from greensched_simulator.runs.charges import charge_of
from greensched_simulator.runs.job_times import job_times_of, meets_deadline, ready_from_s
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.service_latency import latency_of
from greensched_simulator.runs.simulation import bill_of, billed_until_s, zone_balances
from greensched_simulator.runs.utilisation import utilisation_of
from greensched_simulator.world.services import is_replica
from greensched_simulator.world.world import World

_SECONDS_PER_HOUR = 3600.0
_BYTES_PER_GIB = 2.0**30


@dataclass(frozen=True)
class Outcome(BillTotal):
    """The figures of one run; energy, money and carbon are those of the whole window.

    Service replicas are not jobs; their requests are counted. All jobs count. A job that never ran
    waits until the window's end and then runs as fast as it can; its energy, money and carbon are
    charged in addition to the bill.

    A run that lasts longer than the data of the grids has no bill: its energy, money and carbon are
    NaN, and so is `billed_s`. All else is of the time until its last job ends.
    """

    jobs: int
    jobs_done: int  # within the window
    work_core_h: float  # of the reference core, done
    work_gpu_h: float  # of GPUs at the reference core's speed, done
    work_memory_gib_h: float  # held for as long, done
    deadlines: int  # jobs that have one
    deadlines_met: int
    jobs_delayed: int  # planned for a start after they were ready
    delay_mean_s: float  # of these, from ready to the planned start; 0 if there are none
    completion_mean_s: float  # of `completions_s`
    completion_median_s: float
    completion_p95_s: float
    completion_p99_s: float
    makespan_s: float  # from the first arrival of a job to the last end of one; 0 if none ended
    throughput_jobs_per_h: float  # jobs done over the makespan; 0 if none ended
    wait_mean_s: float  # of `waits_s`; until the window's end for jobs that never ran
    wait_p95_s: float
    slowdown_mean: float  # of `slowdowns`
    slowdown_p95: float
    fairness: float  # of the slowdowns, by `jain_index`
    cpu_utilisation_mean: float  # see `Utilisation`
    cpu_utilisation_peak: float
    memory_utilisation_mean: float
    memory_utilisation_peak: float
    gpu_utilisation_mean: float
    gpu_utilisation_peak: float
    billed_s: float
    billed_alone_s: float  # what `billed_s` were without the other schedules that it includes
    jobs_never_ran: int
    energy_charged_j: float  # for those; 0 if all ran: see `charges`
    cost_charged: float
    carbon_charged_g: float
    carbon_marginal_g: float  # of energy and charges, by marginal intensity; 0 if not known
    carbon_embodied_g: float  # of making all nodes, for the time billed; 0 if not known
    # At the meter of the zones that have panels; all 0 without panels.
    solar_used_j: float  # from the panels into the nodes at once
    solar_stored_j: float  # into the battery
    solar_curtailed_j: float  # not used
    battery_given_j: float
    battery_lost_j: float  # of the stored joules
    battery_left_j: float  # in the battery at the end
    imported_j: float  # from the grid
    requests: float = 0.0  # of services; 0 without services
    requests_in_time: float = 0.0  # within their objectives
    requests_turned_away: float = 0.0  # beyond the capacity of all replicas
    latency_p50_s: float = 0.0  # infinity if half of the requests or more are turned away
    latency_p99_s: float = 0.0
    failures: int = 0  # of nodes
    jobs_stopped: int = 0  # times that failures stopped a job

    @property
    def is_billed(self) -> bool:
        """Return whether the run has a bill; of a mean, whether all runs have one."""
        return not math.isnan(self.billed_s)

    @property
    def energy_j(self) -> float:
        """Return the joules of the bill and the charges."""
        return super().energy_j + self.energy_charged_j

    @property
    def cost(self) -> float:
        """Return the money of the bill and the charges, in the scenario's currency."""
        return super().cost + self.cost_charged

    @property
    def carbon_g(self) -> float:
        """Return the grams of the bill and the charges."""
        return super().carbon_g + self.carbon_charged_g


def outcome_of(world: World, schedule: Schedule, bill: Bill, until_s: float) -> Outcome:
    """Return the figures of a schedule and its bill."""
    charge = charge_of(world, schedule, until_s)
    taken: dict[str, float] = {
        **vars(total_bill(bill)),
        "billed_s": until_s,
        "energy_charged_j": charge.energy_j,
        "cost_charged": charge.cost,
        "carbon_charged_g": charge.carbon_g,
        "carbon_marginal_g": _marginal_g(world, schedule, until_s),
        "carbon_embodied_g": float(world.nodes.embodied_g_per_s.sum()) * until_s,
        **_supplied(world, schedule, until_s)._asdict(),
    }
    return _outcome(world, schedule, until_s, taken)


def outcome_without_bill(world: World, schedule: Schedule) -> Outcome:
    """Return the figures of a schedule that lasts longer than the data of the grids."""
    never_ran = bool(np.isnan(schedule.start_s).any())
    unknown: dict[str, bool] = {
        **dict.fromkeys((*PARTS, "billed_s"), True),
        **dict.fromkeys(("energy_charged_j", "cost_charged", "carbon_charged_g"), never_ran),
        "carbon_marginal_g": world.grids.marginal_g_per_kwh.size > 0,
        "carbon_embodied_g": bool(world.nodes.embodied_g_per_s.any()),
        **dict.fromkeys(_Supply._fields, any(world.batteries)),
    }
    taken = {name: math.nan if is_unknown else 0.0 for name, is_unknown in unknown.items()}
    taken["nodes_used"] = np.unique(schedule.run_segments.node).size
    return _outcome(world, schedule, billed_until_s(world, schedule), taken)


def _outcome(
    world: World, schedule: Schedule, until_s: float, taken: Mapping[str, float]
) -> Outcome:
    """Return what was done until `until_s` together with what it took, named as in `Outcome`."""
    is_job, latency = ~is_replica(world.jobs), latency_of(world, schedule)
    return Outcome(
        **_work(world, schedule, until_s)._asdict(),
        **job_times_of(world, schedule, until_s)._asdict(),
        **utilisation_of(world, schedule, until_s)._asdict(),
        billed_alone_s=billed_until_s(world, schedule),
        jobs_never_ran=int((is_job & np.isnan(schedule.start_s)).sum()),
        requests=latency.requests,
        requests_in_time=latency.in_time,
        requests_turned_away=latency.turned_away,
        latency_p50_s=latency.p50_s,
        latency_p99_s=latency.p99_s,
        failures=int((schedule.outages.asleep_s < until_s).sum()),
        jobs_stopped=len(stops_by_failures(schedule)),
        **taken,  # type: ignore[arg-type]  # nodes_used is whole, as the bill gives it
    )


class _Work(NamedTuple):
    """Jobs and their work, named as in `Outcome`."""

    jobs: int
    jobs_done: int
    work_core_h: float
    work_gpu_h: float
    work_memory_gib_h: float
    deadlines: int
    deadlines_met: int
    jobs_delayed: int
    delay_mean_s: float
    makespan_s: float
    throughput_jobs_per_h: float


def _work(world: World, schedule: Schedule, until_s: float) -> _Work:
    jobs = world.jobs
    is_job = ~is_replica(jobs)
    is_done = is_job & (schedule.end_s <= until_s + ROUNDING_S)
    worker_h = jobs.runtime_s[is_done] / _SECONDS_PER_HOUR * jobs.workers[is_done]
    first_s, last_s = jobs.arrival_s[is_job].min(), np.nanmax(schedule.end_s[is_job], initial=0.0)
    makespan_s = max(float(last_s - first_s), 0.0)
    delay_s = (schedule.planned_s - ready_from_s(world, schedule))[is_job]
    delay_s = delay_s[delay_s > ROUNDING_S]  # without those that never were planned
    return _Work(
        jobs=int(is_job.sum()),
        jobs_done=int(is_done.sum()),
        work_core_h=float((jobs.cpu_cores[is_done] * worker_h).sum()),
        work_gpu_h=float((jobs.gpus[is_done] * worker_h).sum()),
        work_memory_gib_h=float((jobs.memory_bytes[is_done] * worker_h).sum()) / _BYTES_PER_GIB,
        deadlines=int(np.isfinite(jobs.deadline_s).sum()),
        deadlines_met=int((is_done & meets_deadline(world, schedule)).sum()),
        jobs_delayed=delay_s.size,
        delay_mean_s=float(delay_s.mean()) if delay_s.size else 0.0,
        makespan_s=makespan_s,
        throughput_jobs_per_h=(
            float(is_done.sum()) / makespan_s * _SECONDS_PER_HOUR if makespan_s else 0.0
        ),
    )


def stops_by_failures(schedule: Schedule) -> set[tuple[int, float]]:
    """Return the jobs that a node's failure stopped, each with the time."""
    ran, failed = schedule.run_segments, schedule.outages
    if failed.node.size == 0:
        return set()
    fails = {*zip(failed.node.tolist(), failed.asleep_s.tolist(), strict=True)}
    ends = zip(ran.job.tolist(), ran.node.tolist(), ran.end_s.tolist(), strict=True)
    return {(job, end_s) for job, node, end_s in ends if (node, end_s) in fails}


class _Supply(NamedTuple):
    """The joules of panels, batteries and grid, named as in `Outcome`."""

    solar_used_j: float
    solar_stored_j: float
    solar_curtailed_j: float
    battery_given_j: float
    battery_lost_j: float
    battery_left_j: float
    imported_j: float


def _supplied(world: World, schedule: Schedule, until_s: float) -> _Supply:
    found = [each for each in zone_balances(world, schedule, until_s) if each is not None]
    stored_j = float(sum(each.joules(each.charge_w) for each in found))
    given_j = float(sum(each.joules(each.discharge_w) for each in found))
    left_j = float(sum(each.stored_j[-1] for each in found))
    return _Supply(
        solar_used_j=float(sum(each.joules(each.used_w) for each in found)),
        solar_stored_j=stored_j,
        solar_curtailed_j=float(sum(each.joules(each.curtailed_w) for each in found)),
        battery_given_j=given_j,
        battery_lost_j=max(stored_j - given_j - left_j, 0.0),
        battery_left_j=left_j,
        imported_j=float(sum(each.joules(each.imported_w) for each in found)),
    )


def _marginal_g(world: World, schedule: Schedule, until_s: float) -> float:
    """Return the grams of bill and charges by marginal instead of average intensity."""
    if world.grids.marginal_g_per_kwh.size == 0:
        return 0.0
    grids = world.grids._replace(carbon_g_per_kwh=world.grids.marginal_g_per_kwh)
    at_margin = world._replace(grids=grids)
    used_g = total_bill(bill_of(at_margin, schedule, until_s)).carbon_g
    return used_g + charge_of(at_margin, schedule, until_s).carbon_g
