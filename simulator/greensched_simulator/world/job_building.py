"""The jobs of a world: read or generated, scaled to a load, with estimates and deadlines."""

import math
from collections.abc import Hashable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from greensched_core.durations import format_duration
from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.precedence import Precedence, precedence_of, whole_jobs
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.formats.traces import load_trace
from greensched_simulator.formats.workload import Task
from greensched_simulator.formats.workload import Trace as TraceRead
from greensched_simulator.scenario.model import (
    Scenario,
    ScenarioWorkload,
    SlackClass,
    Suspend,
)
from greensched_simulator.scenario.trace_workload import TraceWorkload
from greensched_simulator.world.elastic_jobs import curves_of
from greensched_simulator.world.job_drafts import Capacity, Draft, together
from greensched_simulator.world.network import data_of_jobs
from greensched_simulator.world.synthetic_jobs import generated_jobs
from greensched_simulator.world.trainings import trainings_of

NO_JOB_LEFT = (
    "leaves no job: no job that arrives within the length fits a node; give larger nodes, or "
    "smaller jobs"
)
_MOST_OF = 0.9  # share of the length in which jobs should arrive


class JobList(NamedTuple):
    """Jobs with their names, and notes about them, each a sentence."""

    jobs: JobArrays
    precedence: Precedence
    names: tuple[str, ...]
    notes: tuple[str, ...]


def build_jobs(scenario: Scenario, seed: int, capacity: Capacity) -> JobList:
    """Return the jobs that arrive within the scenario's length; equal seeds give equal jobs.

    Raises BadInput for jobs that fit no node, unless the scenario skips them, and if no job is
    left.
    """
    workload = scenario.workload
    notes: list[str] = []
    draft = together(list(drafts_of(scenario, seed, capacity, notes)))
    is_within = draft.arrival_s < scenario.length_s
    if not is_within.all():
        notes.append(
            f"{np.sum(~is_within)} jobs are left out: they arrive after the scenario's length"
        )
        draft = draft.chosen(is_within)
    if draft.arrival_s.size == 0:
        raise BadInput(f"scenario {scenario.name}: workload.skip_unplaceable {NO_JOB_LEFT}")
    last_s = float(draft.arrival_s[-1])
    if last_s < _MOST_OF * scenario.length_s:
        notes.append(f"the last job arrives {format_duration(last_s)} after the start, of "
                     f"{format_duration(scenario.length_s)}")  # fmt: skip
    place = {name: job for job, name in enumerate(draft.names)}
    precedence = precedence_of([[place[name] for name in after] for after in draft.after])
    jobs = _finished(draft, scenario, seed, precedence)
    if precedence.child.size:
        waiting = int(np.sum(precedence.parents > 0))
        notes.append(f"{waiting:,} of {jobs.arrival_s.size:,} jobs wait for others to end")
    if workload.suspend is not None:
        can_stop = int(np.isfinite(jobs.save_every_s).sum())
        notes.append(f"{can_stop:,} of {jobs.arrival_s.size:,} jobs can be suspended")
    if workload.elastic:
        elastic = int(np.sum(jobs.scaling > 0.0))
        notes.append(f"{elastic:,} of {jobs.arrival_s.size:,} jobs are elastic")
    if workload.data:
        reading = int(np.sum(jobs.data_bytes > 0.0))
        notes.append(f"{reading:,} of {jobs.arrival_s.size:,} jobs read data, "
                     f"{jobs.data_bytes @ jobs.workers / 1e9:,.0f} GB in all")  # fmt: skip
    return JobList(jobs, precedence, draft.names, tuple(notes))


def drafts_of(
    scenario: Scenario, seed: int, capacity: Capacity, notes: list[str]
) -> Iterator[Draft]:
    """Yield the jobs of each source, and add notes about them.

    Raises BadInput for jobs that fit no node, unless the scenario skips them.
    """
    workload, share_gpus = scenario.workload, scenario.assumptions.share_gpus
    if workload.generator is not None:
        draft = generated_jobs(scenario, workload.generator, seed, capacity)
        draft = _with_gpus(draft, share_gpus, notes)
        yield _placeable(draft, workload, capacity, notes)
    elif workload.trace is not None:
        draft = _with_gpus(_from_trace(workload.trace, seed, notes), share_gpus, notes)
        draft = _placeable(draft, workload, capacity, notes)
        yield _to_load(draft, workload.load, capacity, notes)
    for draft in trainings_of(scenario, seed, notes):
        yield _placeable(draft, workload, capacity, notes)


def read_trace(trace: TraceWorkload) -> TraceRead:
    """Return the trace of a scenario; an unchanged file is read only once.

    Raises BadInput that lists the faulty rows.
    """
    state, options = trace.file.stat(), tuple(trace.options().items())
    return _read_trace(trace.file, options, trace.skip_faulty, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _read_trace(
    path: Path,
    options: tuple[tuple[str, Hashable], ...],
    skip_faulty: bool,
    changed_ns: int,
    size: int,
) -> TraceRead:
    return load_trace(path, dict(options), skip_faulty=skip_faulty, skipped_by="skip_faulty: true")


def _from_trace(trace: TraceWorkload, seed: int, notes: list[str]) -> Draft:
    read = read_trace(trace)
    notes.extend(read.notes)
    if read.faults:
        rows = len({fault.row for fault in read.faults})
        notes.append(f"{rows} faulty rows of {trace.file.name} left out, the first: "
                     f"{read.faults[0]}")  # fmt: skip
    tasks = list(read.tasks[: trace.first])
    if trace.sample is not None and trace.sample < len(tasks):
        tasks = _drawn(tasks, trace.sample, seed, notes)
    chosen = sum(bool(task.gpu_models) for task in tasks)
    if chosen:
        notes.append(f"{chosen} jobs name models of GPUs; any GPU is assumed to do")
    due = sum(task.deadline_s is not None for task in tasks)
    if due:
        notes.append(f"{due} of {len(tasks)} jobs have their deadline from the trace")
    draft = _draft(tasks)
    return draft if trace.repeat == 1 else _repeated(draft, trace.repeat)


def _drawn(tasks: list[Task], count: int, seed: int, notes: list[str]) -> list[Task]:
    """Return `count` drawn jobs in order; tasks that wait for each other are drawn as one job."""
    place = {task.name: number for number, task in enumerate(tasks)}
    edges = [(number, place[name]) for number, task in enumerate(tasks) for name in task.after]
    ends = np.array(edges, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(edges)), (ends[0], ends[1])), shape=(len(tasks), len(tasks)))
    jobs, job_of = connected_components(graph, directed=False)
    if count >= jobs:
        return tasks
    drawn = stream(seed, "jobs/sample").choice(jobs, count, replace=False)
    notes.append(f"{count} of {jobs} jobs of the trace, drawn with seed {seed}")
    return [tasks[number] for number in np.flatnonzero(np.isin(job_of, drawn))]


def _draft(tasks: list[Task]) -> Draft:
    first_s = tasks[0].arrival_s
    return Draft(
        names=tuple(task.name for task in tasks),
        after=tuple(task.after for task in tasks),
        arrival_s=np.array([task.arrival_s - first_s for task in tasks]),
        runtime_s=np.array([task.runtime_s for task in tasks]),
        expected_s=np.array(
            [math.nan if task.estimate_s is None else task.estimate_s for task in tasks]
        ),
        cpu_cores=np.array([task.cpu_cores for task in tasks]),
        memory_bytes=np.array([task.memory_bytes for task in tasks]),
        gpus=np.array([task.gpus * task.gpu_share for task in tasks]),
        gpu_ratio=np.array(
            [math.nan if task.gpu_ratio is None else task.gpu_ratio for task in tasks]
        ),
        workers=np.array([float(task.workers) for task in tasks]),
        due_in_s=np.array(
            [
                math.nan if task.deadline_s is None else task.deadline_s - task.arrival_s
                for task in tasks
            ]
        ),
    )


def _repeated(draft: Draft, times: int) -> Draft:
    """Return the draft repeated `times` times, with a mean interval between rounds."""
    count = draft.arrival_s.size
    round_s = draft.arrival_s[-1] * count / max(count - 1, 1)
    rounds = np.repeat(np.arange(times), count)
    return Draft(
        tuple(f"{name}-{number}" for number in range(times) for name in draft.names),
        tuple(
            tuple(f"{name}-{number}" for name in after)
            for number in range(times)
            for after in draft.after
        ),
        np.tile(draft.arrival_s, times) + rounds * round_s,
        *(np.tile(column, times) for column in draft[3:]),
    )


def _placeable(
    draft: Draft, workload: ScenarioWorkload, capacity: Capacity, notes: list[str]
) -> Draft:
    fits = capacity.fitting(draft) >= draft.workers
    if fits.all():
        return draft
    size = draft.cpu_cores + draft.gpus * capacity.cpu_cores
    large = int(np.argmax(np.where(fits, -1.0, size * draft.workers)))
    times = f"{draft.workers[large]:g} times " if draft.workers[large] > 1.0 else ""
    gpus = draft.gpus[large]
    unplaceable = (
        f"{int(np.sum(~fits))} of {fits.size} jobs fit no node; the largest, "
        f"{draft.names[large]}, requests {times}{draft.cpu_cores[large]:g} cores, "
        f"{draft.memory_bytes[large] / 2**30:.4g} GiB and {gpus:g} GPU{'' if gpus == 1.0 else 's'}"
    )
    if not workload.skip_unplaceable:
        raise BadInput(
            f"workload: {unplaceable}; give larger nodes, or more of them if jobs have several "
            "workers, or leave out such jobs with skip_unplaceable: true"
        )
    kept = draft.chosen(fits)
    waiting = int(fits.sum()) - kept.arrival_s.size
    waiters = f", with {waiting} that wait for them" if waiting else ""
    notes.append(f"{unplaceable}: left out{waiters}")
    return kept


def _to_load(draft: Draft, load: float | None, capacity: Capacity, notes: list[str]) -> Draft:
    """Compress or spread arrivals so that the scarcest resource is busy to `load`."""
    if load is None or draft.arrival_s.size == 0:
        return draft
    span_s = draft.arrival_s[-1]
    if span_s <= 0:
        raise BadInput("workload.load: all jobs arrive at once, so there is no span to change")
    factor = float(capacity.busy_s(draft).sum(axis=1).max() / (load * span_s))
    notes.append(f"arrivals were multiplied by {factor:.6g}")
    return draft._replace(arrival_s=draft.arrival_s * factor)


def _with_gpus(draft: Draft, are_shared: bool, notes: list[str]) -> Draft:
    """Return the draft with parts of GPUs rounded up to whole ones, unless GPUs are shared."""
    parts = int(np.sum(draft.gpus != np.floor(draft.gpus)))
    if parts == 0 or are_shared:
        return draft
    notes.append(f"{parts:,} jobs request a part of a GPU and get a whole one (share_gpus)")
    return draft._replace(gpus=np.ceil(draft.gpus))


def _finished(draft: Draft, scenario: Scenario, seed: int, precedence: Precedence) -> JobArrays:
    """Return the jobs; those that wait for each other share a deadline, like one long job.

    Estimates and deadlines from the jobs' owners are kept.
    """
    workload, whole = scenario.workload, whole_jobs(precedence, draft.arrival_s, draft.runtime_s)
    count = draft.arrival_s.size
    errors = workload.estimate_error * stream(seed, "jobs/estimates").standard_normal(count)
    estimate_s = draft.runtime_s * np.exp(errors)
    allowed_s = workload.deadline_runtime_factor * whole.runtime_s
    deadline_s = whole.arrival_s + allowed_s + _slack_s(workload.slack, whole.runtime_s)
    can_stop, suspend = _can_stop(draft, workload.suspend, seed), workload.suspend or Suspend()
    data_bytes, data_zone = data_of_jobs(workload, tuple(scenario.grids), count, seed)
    return JobArrays(
        arrival_s=draft.arrival_s,
        runtime_s=draft.runtime_s,
        estimate_s=np.where(np.isnan(draft.expected_s), estimate_s, draft.expected_s),
        cpu_cores=draft.cpu_cores,
        memory_bytes=draft.memory_bytes,
        gpus=draft.gpus,
        gpu_ratio=_gpu_ratio(draft, scenario, seed),
        workers=draft.workers,
        deadline_s=np.where(np.isnan(draft.due_in_s), deadline_s, draft.arrival_s + draft.due_in_s),
        startup_s=np.where(can_stop, suspend.startup, 0.0),
        save_every_s=np.where(can_stop, suspend.save_every, math.inf),
        save_s=np.where(can_stop, suspend.saving, 0.0),
        leaves_at_s=np.full(count, math.inf),
        scaling=curves_of(workload, can_stop & (draft.workers == 1.0), seed),
        frequency_sensitivity=stream(seed, "jobs/frequency_sensitivity").choice(
            workload.frequency_sensitivity, count
        ),
        data_bytes=data_bytes,
        data_zone=data_zone,
    )


def _gpu_ratio(draft: Draft, scenario: Scenario, seed: int) -> Floats:
    """Return the share of their range of power that each job's GPUs draw, [J]."""
    kinds = scenario.workload.gpu_ratio or [scenario.assumptions.gpu_ratio]
    drawn = stream(seed, "jobs/gpu_ratio").choice(kinds, draft.gpu_ratio.size)
    return np.where(np.isnan(draft.gpu_ratio), drawn, draft.gpu_ratio)


def _can_stop(draft: Draft, suspend: Suspend | None, seed: int) -> npt.NDArray[np.bool_]:
    """Return which jobs may be suspended, [J]; each must have work left after it."""
    if suspend is None:
        return np.zeros(draft.arrival_s.size, dtype=bool)
    drawn = stream(seed, "jobs/suspend").random(draft.arrival_s.size) < suspend.share
    least_s = max(suspend.longer_than, suspend.startup + suspend.save_every + suspend.saving)
    return np.asarray(drawn & (draft.runtime_s > least_s))


def _slack_s(slack: float | list[SlackClass], runtime_s: Floats) -> Floats:
    classes = slack if isinstance(slack, list) else [SlackClass.model_construct(may_wait=slack)]
    found: Floats = np.full(runtime_s.size, math.inf)
    for each in reversed(classes):
        limit_s = math.inf if each.shorter_than is None else each.shorter_than
        found = np.where(runtime_s < limit_s, each.may_wait, found)
    return found
