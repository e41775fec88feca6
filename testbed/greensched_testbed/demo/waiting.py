"""Which of the demo's work may wait, until when, and where it must run.

Made up, and the same in all runs: every third task without GPU has a deadline, and must run in one
grid zone, where its data lie. All other work is started as it comes, anywhere. The zone is one
whose hours differ: where power is always alike nothing is won by waiting.
"""

from collections.abc import Mapping
from dataclasses import replace

from greensched_simulator.formats.workload import Task, Trace
from greensched_testbed.demo.world import ZONES

EVERY = 3  # tasks without GPU, of which one may wait
ZONE_OF_DATA = ZONES[0].name  # the solar one: it dips at noon
WAIT_S = 6 * 3600.0  # for which it may, at most
MARGIN_WALL_S = 3.0  # spare real time before a deadline: what pods take to start and be seen to
_MARGIN_OF_RUNTIME = 0.1  # as the built-in policy has it


def with_deadlines(trace: Trace, rate: float) -> Trace:
    """Return the trace in which every third task without GPU may start six hours after it arrives.

    Its deadline leaves room for its runtime and the policy's margin. `rate` is how many times as
    fast as the wall's the workload's clock goes.
    """
    may_wait = {task.name for task in [task for task in trace.tasks if not task.gpus][::EVERY]}
    tasks = tuple(
        replace(task, deadline_s=_deadline_s(task, rate) if task.name in may_wait else None)
        for task in trace.tasks
    )
    note = (
        f"made up, in all runs: {len(may_wait)} pods may wait up to {WAIT_S / 3600:.0f} h and "
        f"must run where their data is, in {ZONE_OF_DATA}"
    )
    return replace(trace, tasks=tasks, notes=(*trace.notes, note))


def zones_of_data(trace: Trace) -> Mapping[str, str]:
    """Return the zone of each task that may wait, by its name."""
    return {task.name: ZONE_OF_DATA for task in trace.tasks if task.deadline_s is not None}


def margin_s(rate: float) -> float:
    """Return the policy's safety margin, seconds of the workload."""
    return MARGIN_WALL_S * rate


def _deadline_s(task: Task, rate: float) -> float:
    spare_s = max(margin_s(rate), _MARGIN_OF_RUNTIME * task.runtime_s)
    return task.arrival_s + task.runtime_s + spare_s + WAIT_S
