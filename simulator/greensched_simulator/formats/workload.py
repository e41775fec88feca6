"""Workloads: tasks that arrive, run for a time and occupy resources."""

import random
from dataclasses import dataclass, replace

from greensched_core.errors import BadInput


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a trace; each of its workers becomes one pod."""

    name: str
    arrival_s: float  # from any fixed moment, such as 1970; the first arrival counts as 0
    runtime_s: float  # on a reference node
    cpu_cores: float  # of each worker, as all its requests
    memory_bytes: float
    gpus: int = 0
    gpu_share: float = 1.0  # of each GPU; less than 1 only with a single one
    gpu_models: tuple[str, ...] = ()  # one of these is needed; empty: any model
    estimate_s: float | None = None  # runtime expected by its owner; None: not given
    workers: int = 1  # running at the same time
    after: tuple[str, ...] = ()  # names of the tasks that it waits for
    deadline_s: float | None = None  # on the clock of arrival_s; None: not given
    # share of their idle-to-peak range that its GPUs draw, 0..1; None: not given
    gpu_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class RowFault:
    """A fault in one row of a file; the header is row 1."""

    row: int
    reason: str

    def __str__(self) -> str:
        return f"row {self.row}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Trace:
    """Tasks in order of arrival, their source, and notes about them."""

    tasks: tuple[Task, ...]
    source: str
    notes: tuple[str, ...] = ()  # assumptions and roundings, each a sentence
    faults: tuple[RowFault, ...] = ()  # rows left out
    format_name: str = ""  # of the file; empty: not read from one

    @property
    def span_s(self) -> float:
        """Return the seconds from the first arrival to the last; 0 for fewer than two tasks."""
        return self.tasks[-1].arrival_s - self.tasks[0].arrival_s if self.tasks else 0.0


@dataclass(frozen=True, slots=True)
class Compressed:
    """A trace with arrivals and runtimes multiplied by one factor."""

    trace: Trace
    factor: float


def compressed(trace: Trace, span_s: float) -> Compressed:
    """Scale all times of a trace by one factor, so that arrivals span `span_s`, the first at 0.

    The number of tasks that run at the same time does not change. Raises BadInput if all tasks
    arrive at once, or if `span_s` is not positive.
    """
    if span_s <= 0:
        raise BadInput(f"a trace cannot be compressed to {span_s} s: give a positive span")
    if trace.span_s <= 0:
        raise BadInput(f"{trace.source}: all tasks arrive at once, so there is no span to scale")
    factor = span_s / trace.span_s
    first = trace.tasks[0].arrival_s

    def scaled(seconds: float | None) -> float | None:
        return None if seconds is None else seconds * factor

    tasks = tuple(
        replace(
            task,
            arrival_s=(task.arrival_s - first) * factor,
            runtime_s=task.runtime_s * factor,
            estimate_s=scaled(task.estimate_s),
            deadline_s=scaled(None if task.deadline_s is None else task.deadline_s - first),
        )
        for task in trace.tasks
    )
    note = f"arrivals and runtimes were multiplied by {factor:.6g}"
    return Compressed(replace(trace, tasks=tasks, notes=(*trace.notes, note)), factor)


def sampled(trace: Trace, count: int, seed: int) -> Trace:
    """Return `count` tasks drawn without replacement, in order of arrival; all if there are fewer.

    The same seed draws the same tasks.
    """
    if count >= len(trace.tasks):
        return trace
    chosen = sorted(random.Random(seed).sample(range(len(trace.tasks)), count))
    note = f"{count} of {len(trace.tasks)} tasks, drawn with seed {seed}"
    tasks = tuple(trace.tasks[index] for index in chosen)
    return replace(trace, tasks=tasks, notes=(*trace.notes, note))


def as_pods(trace: Trace) -> Trace:
    """Return a trace of single, independent pods, for replaying on a cluster.

    Each worker becomes a task, and parts of GPUs become whole ones, as device plugins require. The
    notes count the affected tasks.
    """
    tasks: list[Task] = []
    for task in trace.tasks:
        alone = replace(task, workers=1, after=(), gpu_share=1.0, deadline_s=None)
        names = [f"{task.name}-{worker}" for worker in range(task.workers)]
        tasks += [replace(alone, name=name) for name in names] if task.workers > 1 else [alone]
    counted = (
        (sum(task.workers > 1 for task in trace.tasks), "have several workers; each becomes a pod"),
        (sum(bool(task.after) for task in trace.tasks), "wait for others, which is ignored here"),
        (
            sum(task.deadline_s is not None for task in trace.tasks),
            "have a deadline, which is ignored here",
        ),
        (
            sum(task.gpu_ratio is not None for task in trace.tasks),
            "give the watts of their GPUs, which is ignored here",
        ),
        (
            sum(task.gpu_share < 1.0 for task in trace.tasks),
            "request a part of a GPU and get a whole one",
        ),
    )
    notes = tuple(f"{count} tasks {what}" for count, what in counted if count)
    return replace(trace, tasks=tuple(tasks), notes=(*trace.notes, *notes))
