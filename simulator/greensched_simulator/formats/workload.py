"""Work to be done: tasks that arrive, run for a while and hold resources."""

import random
from dataclasses import dataclass, replace

from greensched_core.errors import BadInput


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a trace; each of its workers becomes one pod."""

    name: str
    arrival_s: float  # since the start of the trace
    runtime_s: float  # on a reference node
    cpu_cores: float  # of each worker, as all that it asks for
    memory_bytes: float
    gpus: int = 0  # GPUs
    gpu_share: float = 1.0  # of each GPU; less than 1 only of a single one
    gpu_models: tuple[str, ...] = ()  # any of these will do; empty: any at all
    estimate_s: float | None = None  # runtime that its owner expected; None: not given
    workers: int = 1  # which run at the same time
    after: tuple[str, ...] = ()  # names of the tasks that it waits for
    deadline_s: float | None = None  # since the start of the trace; None: not given


@dataclass(frozen=True, slots=True)
class RowFault:
    """What is wrong with one row of a file; the header is row 1."""

    row: int
    reason: str

    def __str__(self) -> str:
        return f"row {self.row}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Trace:
    """Tasks in order of arrival, where they come from, and what should be known about them."""

    tasks: tuple[Task, ...]
    source: str
    notes: tuple[str, ...] = ()  # assumptions and roundings, each a sentence
    faults: tuple[RowFault, ...] = ()  # rows left out

    @property
    def span_s(self) -> float:
        """Return the seconds from the first arrival to the last; 0 for less than two tasks."""
        return self.tasks[-1].arrival_s - self.tasks[0].arrival_s if self.tasks else 0.0


@dataclass(frozen=True, slots=True)
class Compressed:
    """A trace whose arrivals and runtimes were multiplied by one factor."""

    trace: Trace
    factor: float


def compressed(trace: Trace, span_s: float) -> Compressed:
    """Scale a trace so that its arrivals span `span_s`, the first at 0; all other times alike.

    How many tasks run at the same time stays what it was. Raises BadInput when all tasks arrive at
    once, or `span_s` is not positive.
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
    """Return a trace of single pods that wait for no other, for what can play no more.

    Each worker is a task of its own, and a part of a GPU is a whole one, as for a device plugin;
    the notes say how many were concerned.
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
            sum(task.gpu_share < 1.0 for task in trace.tasks),
            "request a part of a GPU and get a whole one",
        ),
    )
    notes = tuple(f"{count} tasks {what}" for count, what in counted if count)
    return replace(trace, tasks=tuple(tasks), notes=(*trace.notes, *notes))
