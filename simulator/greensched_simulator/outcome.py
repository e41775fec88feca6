"""What a run came to: what was done first, then what it took, then how long jobs waited."""

from typing import NamedTuple

import numpy as np

from greensched_policies.accounting import Bill, total_bill
from greensched_policies.cost import Floats
from greensched_simulator.simulation import Schedule
from greensched_simulator.world import World

# Feitelson et al., "Theory and Practice in Parallel Job Scheduling", JSSPP 1997: without a bound
# the slowdown of jobs of a second outweighs all others.
SLOWDOWN_BOUND_S = 10.0
_SECONDS_PER_HOUR = 3600.0


class Outcome(NamedTuple):
    """The figures of one run; energy, money and carbon are those of the whole window."""

    jobs: int
    jobs_done: int
    work_core_h: float  # of the reference core, done
    deadlines: int  # jobs that have one
    deadlines_met: int
    energy_active_j: float
    energy_idle_j: float
    cost_active: float
    cost_idle: float
    carbon_active_g: float
    carbon_idle_g: float
    wait_mean_s: float  # from arrival to start
    wait_p95_s: float
    slowdown_mean: float  # bounded: (end − arrival) / max(runtime on its node, 10 s), at least 1
    slowdown_p95: float
    fairness: float  # Jain's index of the slowdowns: 1 when all are alike, 1/jobs at worst
    nodes_used: int
    billed_s: float

    @property
    def energy_j(self) -> float:
        """Return joules at the meter, idle ones included."""
        return self.energy_active_j + self.energy_idle_j

    @property
    def cost(self) -> float:
        """Return the money for all energy, in the scenario's currency."""
        return self.cost_active + self.cost_idle

    @property
    def carbon_g(self) -> float:
        """Return the grams of all energy: operational, location-based."""
        return self.carbon_active_g + self.carbon_idle_g


def outcome_of(world: World, schedule: Schedule, bill: Bill, until_s: float) -> Outcome:
    """Return the figures of a schedule and its bill."""
    jobs, total = world.jobs, total_bill(bill)
    is_done = ~np.isnan(schedule.end_s)
    has_deadline = np.isfinite(jobs.deadline_s)
    is_met = is_done & has_deadline & (schedule.end_s <= jobs.deadline_s)
    wait_s = schedule.start_s - jobs.arrival_s
    slowdown = slowdowns(world, schedule)
    return Outcome(
        jobs=jobs.arrival_s.size,
        jobs_done=int(is_done.sum()),
        work_core_h=float((jobs.cpu_cores * jobs.runtime_s)[is_done].sum()) / _SECONDS_PER_HOUR,
        deadlines=int(has_deadline.sum()),
        deadlines_met=int(is_met.sum()),
        energy_active_j=total.energy_active_j,
        energy_idle_j=total.energy_idle_j,
        cost_active=total.cost_active,
        cost_idle=total.cost_idle,
        carbon_active_g=total.carbon_active_g,
        carbon_idle_g=total.carbon_idle_g,
        wait_mean_s=float(wait_s.mean()),
        wait_p95_s=float(np.quantile(wait_s, 0.95)),
        slowdown_mean=float(slowdown.mean()),
        slowdown_p95=float(np.quantile(slowdown, 0.95)),
        fairness=float(slowdown.sum() ** 2 / (slowdown.size * (slowdown**2).sum())),
        nodes_used=total.nodes_used,
        billed_s=until_s,
    )


def slowdowns(world: World, schedule: Schedule) -> Floats:
    """Return each job's bounded slowdown, [J]."""
    runtime_s = np.maximum(schedule.end_s - schedule.start_s, SLOWDOWN_BOUND_S)
    slowdown: Floats = np.maximum((schedule.end_s - world.jobs.arrival_s) / runtime_s, 1.0)
    return slowdown
