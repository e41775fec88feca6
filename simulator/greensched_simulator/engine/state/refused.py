"""Requests that found no room: a job with an equal or larger request need not search."""

import numpy as np

from greensched_policies.compiling.compiled import fast
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.jobs import JobArrays

_REMEMBERED = 8


@fast
def nothing_refused() -> Floats:
    """Return an empty table of refused requests, [R,3]."""
    return np.full((_REMEMBERED, 3), np.inf)


@fast
def refuse(job: int, jobs: JobArrays, refused: Floats) -> None:
    """Store a job's request in the table, if it has a free row."""
    for place in range(refused.shape[0]):
        if np.isinf(refused[place, 0]):
            refused[place, 0] = jobs.cpu_cores[job]
            refused[place, 1] = jobs.memory_bytes[job]
            refused[place, 2] = jobs.gpus[job]
            return


@fast
def asks_as_much(job: int, jobs: JobArrays, refused: Floats) -> bool:
    """Return whether a job asks for at least as much of everything as a refused request."""
    for place in range(refused.shape[0]):
        if (
            jobs.cpu_cores[job] >= refused[place, 0]
            and jobs.memory_bytes[job] >= refused[place, 1]
            and jobs.gpus[job] >= refused[place, 2]
        ):
            return True
    return False
