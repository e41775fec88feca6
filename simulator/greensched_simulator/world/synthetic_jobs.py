"""Jobs generated from a seed: a Poisson process with a daily wave, log-normal runtimes.

Each column draws from its own random stream. Changing one column does not change the others, and
more jobs do not change the sizes of the first ones.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.scenario.language import Training
from greensched_simulator.scenario.model import Generator, Scenario
from greensched_simulator.world.job_drafts import Capacity, Draft

_DAY_S = 86_400.0
_STEP_S = 60.0  # the wave is linear in between
_MOST_JOBS = 10_000_000


def generated_jobs(
    scenario: Scenario, generator: Generator, seed: int, capacity: Capacity
) -> Draft:
    """Return the jobs in order of arrival: as many as requested, or as the load needs.

    Raises BadInput if the load needs more than ten million jobs, or none.
    """
    if generator.jobs is not None:
        sizes = _sized(generator, seed, generator.jobs)
    else:
        assert scenario.workload.load is not None, "load_scenario refuses neither"
        sizes = _as_many_as_make(scenario, generator, seed, capacity)
    count = sizes.runtime_s.size
    graphs = _graphs(generator, seed, count)
    when_s = arrivals_s(scenario, generator, seed, count, "jobs/arrivals")[graphs.first]
    names = tuple(f"job-{job}" for job in range(count))
    after = tuple(tuple(names[each] for each in places) for places in graphs.after)
    return sizes._replace(arrival_s=when_s, names=names, after=after)


class _Graphs(NamedTuple):
    """Graphs of jobs that wait for each other."""

    first: npt.NDArray[np.int64]  # [J] the first job of each job's graph
    after: list[range]  # the jobs that each waits for


def _graphs(generator: Generator, seed: int, count: int) -> _Graphs:
    """Return graphs of stages for all jobs; a stage waits for all jobs of the one before."""
    first, after = np.arange(count), [range(0)] * count
    if max(generator.stages) == max(generator.stage_tasks) == 1:
        return _Graphs(first, after)
    stages = _drawn([float(each) for each in generator.stages], seed, "jobs/stages", count)
    widths = _drawn([float(each) for each in generator.stage_tasks], seed, "jobs/tasks", count)
    job, graph, stage = 0, 0, 0
    while job < count:
        begin, before = job, range(0)
        for _ in range(int(stages[graph])):
            if job == count:
                break
            own = range(job, min(job + int(widths[stage]), count))
            first[own.start : own.stop] = begin
            after[own.start : own.stop] = [before] * len(own)
            job, before, stage = own.stop, own, stage + 1
        graph += 1
    return _Graphs(first, after)


def _sized(generator: Generator, seed: int, count: int) -> Draft:
    """Return `count` jobs without names and arrivals."""
    spread = stream(seed, "jobs/runtime").standard_normal(count)
    runtime_s = generator.runtime_median * np.exp(generator.runtime_sigma * spread)
    runtime_s = np.clip(runtime_s, generator.runtime_shortest, generator.runtime_longest)
    has_gpus = stream(seed, "jobs/has-gpus").random(count) < generator.gpu_share
    drawn_gpus = _drawn(generator.gpus, seed, "jobs/gpus", count)
    gpus = np.where(has_gpus, drawn_gpus, 0.0)
    cores = _drawn(generator.cpu_cores, seed, "jobs/cores", count) * np.maximum(gpus, 1.0)
    memory = _drawn(generator.memory_per_core, seed, "jobs/memory", count) * cores
    workers = _drawn([float(number) for number in generator.workers], seed, "jobs/workers", count)
    not_given = np.full(count, np.nan)
    return Draft(
        (),
        (),
        np.zeros(count),
        runtime_s,
        not_given,
        cores,
        memory,
        gpus,
        not_given,
        workers,
        due_in_s=not_given,
    )


def _drawn(sizes: list[float], seed: int, purpose: str, count: int) -> Floats:
    places = (stream(seed, purpose).random(count) * len(sizes)).astype(np.int64)
    found: Floats = np.array(sizes)[np.minimum(places, len(sizes) - 1)]
    return found


def _as_many_as_make(
    scenario: Scenario, generator: Generator, seed: int, capacity: Capacity
) -> Draft:
    """Return as many jobs as keep the scarcest resource busy to the load."""
    wanted_s = (scenario.workload.load or 0.0) * scenario.length_s
    count = 4096
    while count <= _MOST_JOBS:
        sizes = _sized(generator, seed, count)
        busy_s = np.cumsum(capacity.busy_s(sizes), axis=1).max(axis=0)
        if busy_s[-1] >= wanted_s:
            needed = int(np.searchsorted(busy_s, wanted_s)) + 1
            return Draft((), (), *(column[:needed] for column in sizes[2:]))
        count *= 2
    raise BadInput(
        f"workload.load: more than {_MOST_JOBS} jobs are needed; make jobs longer or larger, or "
        "the cluster smaller"
    )


def arrivals_s(
    scenario: Scenario, wave: Generator | Training, seed: int, count: int, purpose: str
) -> Floats:
    """Draw from the rate 1 + swing·cos(2π(t − peak)/day) by inverting its integral.

    Given their number, the arrivals of a Poisson process are independent draws from its rate.
    """
    steps = max(math.ceil(scenario.length_s / _STEP_S), 1)
    times_s = np.linspace(0.0, scenario.length_s, steps + 1)
    phase = 2 * math.pi * (scenario.start_s % _DAY_S - wave.peak) / _DAY_S
    turns = 2 * math.pi * times_s / _DAY_S
    swing = wave.daily_swing * _DAY_S / (2 * math.pi)
    integral = times_s + swing * (np.sin(turns + phase) - math.sin(phase))
    drawn = np.sort(stream(seed, purpose).random(count)) * integral[-1]
    found: Floats = np.interp(drawn, integral, times_s)
    return found
