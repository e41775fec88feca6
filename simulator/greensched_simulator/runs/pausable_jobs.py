"""Which of a world's jobs a GreenPolicy may pause, by the operator's own functions."""

import numpy as np

from greensched_operator.holding.holding import HoldTerms, longest_run_s, margin_s
from greensched_operator.objects.green_policy import GreenPolicy
from greensched_operator.planning.cluster_state import slowest_speeds
from greensched_policies.planning.resuming import restarts_left
from greensched_simulator.engine.holding.hold import (
    DEADLINE_S,
    LEAST_PAUSE_S,
    LONGEST_S,
    MARGIN_S,
    RESUME_S,
    PauseTable,
)
from greensched_simulator.engine.state.job_estimates import JobEstimates
from greensched_simulator.world.world import World

NOTHING_PAUSED = PauseTable(np.zeros(0, np.int64), np.zeros((5, 0)), 0.0, 0.0, np.zeros(0))


def pause_table(
    world: World, policy: GreenPolicy, terms: list[HoldTerms | None], estimates: JobEstimates
) -> PauseTable:
    """Return the jobs that may wait, can be suspended and have a deadline, and their pauses.

    `terms`, [J], are their hold terms. A job saves its work while it stops, like a pod in its grace
    period, which is the shortest pause.
    """
    jobs, nodes = world.jobs, world.nodes
    speeds = slowest_speeds(zip(nodes.speed.tolist(), nodes.gpu_capacity.tolist(), strict=True))
    slowest = np.where(jobs.gpus > 0.0, speeds[1], speeds[0])
    runs = zip(jobs.estimate_s.tolist(), slowest.tolist(), strict=True)
    longest_s = np.array([longest_run_s(each_s, "annotation", speed) for each_s, speed in runs])
    may_wait = np.array([one is not None for one in terms])
    saves_s = np.where(np.isfinite(jobs.save_every_s), jobs.save_every_s, 0.0) + jobs.save_s
    numbers = np.empty((5, jobs.arrival_s.size))
    numbers[DEADLINE_S], numbers[RESUME_S] = estimates.latest_end_s, jobs.startup_s
    numbers[LONGEST_S] = longest_s
    numbers[MARGIN_S] = [margin_s(policy, each, policy.runtime_error) for each in longest_s]
    numbers[LEAST_PAUSE_S] = np.maximum(policy.pause.minimum_pause_s, saves_s * estimates.slowest)
    may = may_wait & np.isfinite(jobs.save_every_s) & np.isfinite(estimates.latest_end_s)
    runs_s = zip(jobs.estimate_s.tolist(), jobs.startup_s.tolist(), strict=True)
    return PauseTable(
        may.astype(np.int64),
        numbers,
        policy.pause.minimum_run_s,
        policy.longest_hold_s,
        np.array([restarts_left(*each, 0.0) for each in runs_s]),
    )
