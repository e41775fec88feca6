"""Notes on a comparison's runs: what was left undone, what has no bill, missed objectives."""

from collections.abc import Iterator
from itertools import chain

import numpy as np

from greensched_core.units import SECONDS_PER_HOUR
from greensched_simulator.policy import OPERATORS_PAUSE, USUAL_PAUSE
from greensched_simulator.results.comparison import Round
from greensched_simulator.runs.charges import REJECTION_FACTOR
from greensched_simulator.runs.service_latency import served
from greensched_simulator.world.services import is_replica


def notes_of_first(done: Round) -> Iterator[str]:
    """Return the notes that are written for the first seed only: every seed has much the same."""
    return chain(
        _left_undone(done), _missed_objectives(done), _runs_through(done), _in_quiet_hours(done)
    )


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
        if policy.is_held and policy.pause == USUAL_PAUSE:
            yield (
                f"{policy.label} pauses no job; on a cluster, Jobs that can be suspended may be "
                f"paused: {policy.label}+{OPERATORS_PAUSE}"
            )


def _in_quiet_hours(done: Round) -> Iterator[str]:
    """Yield a note on the jobs that were released although their GreenPolicy was quiet."""
    world, green_policy = done.world, done.world.green_policy
    if green_policy is None or not green_policy.quiet_hours.windows:
        return
    is_job = ~is_replica(world.jobs)
    for policy, schedule in zip(done.policies, done.schedules, strict=True):
        if not policy.is_held:
            continue
        released_s = schedule.planned_s[is_job & np.isfinite(schedule.planned_s)] + world.start_s
        until_s = float(released_s.max(initial=world.start_s)) + 1.0
        spans = np.array(green_policy.quiet_hours.spans(world.start_s, until_s)).reshape(-1, 2)
        if spans.size == 0:
            continue
        place = np.searchsorted(spans[:, 0], released_s, "right") - 1
        is_quiet = (place >= 0) & (released_s < spans[place, 1])
        if is_quiet.any():
            yield (
                f"{policy.label}: {int(is_quiet.sum()):,} of {released_s.size:,} jobs were "
                "released in quiet hours: those that may not wait, those whose latest start had "
                "come, and those above maxHeldSharePercent"
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
