"""Decides which of the demo's tasks may wait, until when, and where they must run.

This is synthetic, and the same in all runs: every second task with GPUs, as a training that nobody
watches, and every third without have a deadline, and must run in one grid zone, where their data
is. All other work starts on arrival, anywhere. The zone's carbon varies by hour: on a constant grid
waiting saves nothing.
"""

from collections.abc import Mapping
from dataclasses import replace

from greensched_simulator.formats.workload import Task, Trace
from greensched_testbed.demo.world import DEMO_ZONES

EVERY_WITH_GPUS, EVERY_OTHER = 2, 3  # one in so many tasks may wait
ZONE_OF_DATA = DEMO_ZONES[0].name  # the solar one: it dips at noon
WAIT_S = 6 * 3600.0  # longest wait
MARGIN_WALL_S = 3.0  # spare real time before a deadline, for starting pods and noticing it


def with_deadlines(trace: Trace, rate: float) -> Trace:
    """Return the trace in which some tasks may start up to six hours after they arrive.

    The deadline adds its runtime and the policy's margin. `rate`: speed of the workload's clock as
    a multiple of the wall clock's.
    """
    with_gpus = [task.name for task in trace.tasks if task.gpus]
    others = [task.name for task in trace.tasks if not task.gpus]
    may_wait = {*with_gpus[::EVERY_WITH_GPUS], *others[::EVERY_OTHER]}
    tasks = tuple(
        replace(task, deadline_s=_deadline_s(task, rate) if task.name in may_wait else None)
        for task in trace.tasks
    )
    note = (
        f"synthetic, in all runs: {len(may_wait)} pods may wait up to {WAIT_S / 3600:.0f} h and "
        f"must run where their data is, in {ZONE_OF_DATA}"
    )
    return replace(trace, tasks=tasks, notes=(*trace.notes, note))


def zones_of_data(trace: Trace) -> Mapping[str, str]:
    """Return the grid zone of each task that may wait, by its name."""
    return {task.name: ZONE_OF_DATA for task in trace.tasks if task.deadline_s is not None}


def clock_margin_s(rate: float) -> float:
    """Return the time that the policy keeps for starting pods, seconds of the workload."""
    return MARGIN_WALL_S * rate


def _deadline_s(task: Task, rate: float) -> float:
    return task.arrival_s + task.runtime_s + clock_margin_s(rate) + WAIT_S
