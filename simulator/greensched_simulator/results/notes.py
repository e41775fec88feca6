"""Notes on a comparison's runs: what was left undone, what has no bill, missed objectives."""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from greensched_core.units import SECONDS_PER_HOUR
from greensched_simulator.policy import GREEN_POLICY, OPERATORS_PAUSE, USUAL_PAUSE
from greensched_simulator.results.comparison import Round
from greensched_simulator.runs.charges import REJECTION_FACTOR
from greensched_simulator.runs.service_latency import served


def notes_of_first(done: Round) -> Iterator[str]:
    """Return the notes that are written for the first seed only: every seed has much the same."""
    return chain(_left_undone(done), _missed_objectives(done), _runs_through(done))


def _left_undone(done: Round) -> Iterator[str]:
    for policy, outcome in zip(done.policies, done.outcomes, strict=True):
        if outcome.jobs_never_ran:
            left = f"{policy.label}: {outcome.jobs_never_ran:,} of {outcome.jobs:,} jobs never ran"
            charged = f"{REJECTION_FACTOR:g} times the most that these could take"
            yield f"{left}; its totals are charged {charged}" if outcome.is_billed else left


def _runs_through(done: Round) -> Iterator[str]:
    """Yield a note if the GreenPolicy runs without the pauses that an operator would make."""
    jobs = done.world.jobs
    if not (np.isfinite(jobs.save_every_s) & np.isfinite(jobs.deadline_s)).any():
        return
    for policy in done.policies:
        if policy.when == GREEN_POLICY and policy.pause == USUAL_PAUSE:
            yield (
                f"{policy.label} pauses no job; on a cluster, Jobs that can be suspended may be "
                f"paused: {policy.label}+{OPERATORS_PAUSE}"
            )


def without_bill(done: Round) -> Iterator[str]:
    """Yield a note on each policy that has no bill."""
    for policy, outcome in zip(done.policies, done.outcomes, strict=True):
        if not outcome.is_billed:
            yield (
                f"{policy.label} is not billed with seed {done.world.seed}: its last job ends "
                f"after {outcome.billed_alone_s / SECONDS_PER_HOUR:.1f} h, and a grid has no data "
                f"for a part of that time. The other policies are billed over "
                f"{done.billed_s / SECONDS_PER_HOUR:.1f} h. Give the scenario longer grid "
                "files, or a shorter `length`"
            )


def _missed_objectives(done: Round) -> Iterator[str]:
    for policy, schedule in zip(done.policies, done.schedules, strict=True):
        for service in done.world.services:
            found = served(done.world, schedule, service)
            in_time = float(found.in_time.sum()) / max(float(found.requests.sum()), 1.0)
            if found.requests.sum() > 0 and in_time < service.share:
                yield (
                    f"{policy.label}: {service.name} answered {100 * in_time:.2f} % of its "
                    f"requests in time, its objective is {100 * service.share:g} %"
                )
