"""The elastic jobs of a workload, and their speedup with workers."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.scaling import NO_SCALING, useful_workers
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.scenario.model import ScenarioWorkload


class Range(NamedTuple):
    """What scaling can change of each job, [J]; all 1 for a job that is not scaled."""

    workers: Floats  # the most that it may have for each worker that it requests
    rate: Floats  # its speed then, relative to one
    # The least and the most worker-time that its work takes, relative to one.
    least_work: Floats
    most_work: Floats


def scaling_of(workload: ScenarioWorkload) -> Floats:
    """Return the curves of all kinds of elastic jobs, [1+kinds,K]; the first is for other jobs."""
    if not workload.elastic:
        return NO_SCALING
    curves = [kind.throughput for kind in workload.elastic]
    longest = max(len(curve) for curve in curves)
    padded = [np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves]
    return np.stack([np.ones(longest), *padded])


def curves_of(workload: ScenarioWorkload, may_be: npt.NDArray[np.bool_], seed: int) -> Floats:
    """Return the row of each job's curve, [J]; 0 for jobs that are not elastic."""
    shares = np.cumsum([kind.share for kind in workload.elastic])
    drawn = stream(seed, "jobs/elastic").random(may_be.size)
    kind = np.searchsorted(shares, drawn, side="right")
    return np.where(may_be & (kind < shares.size), kind + 1.0, 0.0)


def range_of(jobs: JobArrays, scaling: Floats) -> Range:
    """Return what scaling can change of jobs; nothing if `scaling` is `NO_SCALING`."""
    rows = [(1.0, 1.0, 1.0, 1.0)]
    for curve in scaling[1:]:
        workers = np.arange(1.0, useful_workers(curve) + 1)
        per_work = workers / curve[: workers.size]
        rows.append((workers[-1], curve[workers.size - 1], per_work.min(), per_work.max()))
    curve_of = np.where(scaling.shape[0] > 1, jobs.scaling, 0.0).astype(np.int64)
    return Range(*np.array(rows)[curve_of].T)
