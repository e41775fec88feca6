"""Sorts the tasks of a trace, each after those that it waits for."""

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from greensched_simulator.formats.workload import RowFault, Task


def in_order(
    tasks: list[Task], row_of_name: Mapping[str, int], faults: list[RowFault]
) -> list[Task]:
    """Return the tasks by arrival; of tasks that arrive together, predecessors come first.

    Tasks that wait for a missing task, for one that arrives later or, in a circle, for themselves
    are left out and noted as faults, with all tasks that wait for them.
    """
    if not any(task.after for task in tasks):
        return sorted(tasks, key=lambda task: task.arrival_s)
    known = {task.name: task for task in tasks}
    kept, faulty = _without_circles(known)
    depth: dict[str, int] = {}
    for name in kept:
        task = known[name]
        reason = faulty.get(name) or _reason(task, known, depth)
        if reason:
            faults.append(RowFault(row_of_name[name], reason))
        else:
            depth[name] = 1 + max((depth[other] for other in task.after), default=0)
    faults.sort(key=lambda fault: fault.row)
    return sorted(
        (known[name] for name in depth), key=lambda task: (task.arrival_s, depth[task.name])
    )


def _reason(task: Task, known: Mapping[str, Task], depth: Mapping[str, int]) -> str:
    """Return the fault in the tasks that a task waits for; empty if there is none."""
    for name in task.after:
        if name not in known:
            return f"waits for {name!r}, which is not in the trace"
        if name not in depth:
            return f"waits for {name!r}, whose row is faulty"
        if known[name].arrival_s > task.arrival_s:
            return f"arrives before {name!r}, for which it waits"
    return ""


def _without_circles(known: Mapping[str, Task]) -> tuple[list[str], dict[str, str]]:
    """Return the names, predecessors first, and the faults of tasks in circles."""
    after = {name: [other for other in task.after if other in known]
             for name, task in known.items()}  # fmt: skip
    faulty: dict[str, str] = {}
    while True:
        try:
            return [*TopologicalSorter(after).static_order()], faulty
        except CycleError as fault:
            circle = fault.args[1]
            chain = " after ".join(repr(name) for name in reversed(circle))
            faulty |= dict.fromkeys(circle, f"waits for itself: {chain}")
            for name in circle:
                after[name] = []
