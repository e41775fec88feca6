"""Requests that found no room: whoever asks for as much need not look for it."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.compiling.compiled import fast

_REMEMBERED = 8


@fast
def nothing_refused() -> Floats:
    """Return a memory of requests, [R,3], in which nobody was refused yet."""
    return np.full((_REMEMBERED, 3), np.inf)


@fast
def refuse(job: int, jobs: JobArrays, refused: Floats) -> None:
    """Remember what a job asks for, if there is a place left."""
    for place in range(refused.shape[0]):
        if np.isinf(refused[place, 0]):
            refused[place, 0] = jobs.cpu_cores[job]
            refused[place, 1] = jobs.memory_bytes[job]
            refused[place, 2] = jobs.gpus[job]
            return


@fast
def asks_as_much(job: int, jobs: JobArrays, refused: Floats) -> bool:
    """Tell whether a job asks for as much of everything as one that found no room."""
    for place in range(refused.shape[0]):
        if (
            jobs.cpu_cores[job] >= refused[place, 0]
            and jobs.memory_bytes[job] >= refused[place, 1]
            and jobs.gpus[job] >= refused[place, 2]
        ):
            return True
    return False
