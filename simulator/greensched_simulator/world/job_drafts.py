"""Drafts of a world's jobs, and the capacity of its cluster."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats

_EPSILON = 1e-9  # rounding error of sums of floats, as a share of a capacity


class Draft(NamedTuple):
    """Jobs in order of arrival; one float64 [J] array per column."""

    names: tuple[str, ...]
    after: tuple[tuple[str, ...], ...]  # the names of the jobs that each waits for
    arrival_s: Floats  # since the scenario's start
    runtime_s: Floats  # on the reference core
    expected_s: Floats  # runtime expected by its owner; NaN: none
    cpu_cores: Floats
    memory_bytes: Floats
    gpus: Floats  # GPUs, or a part of one
    gpu_ratio: Floats  # share of their range of power that its GPUs draw; NaN: not given
    workers: Floats
    due_in_s: Floats  # from its arrival to its owner's deadline; NaN: none

    def chosen(self, keep: npt.NDArray[np.bool_]) -> Self:
        """Return the jobs for which `keep` ([J]) is true, in order.

        A job that waits for a dropped one is dropped, too.
        """
        if any(self.after):
            keep, gone = keep.copy(), {self.names[job] for job in np.flatnonzero(~keep)}
            for job, (name, after) in enumerate(zip(self.names, self.after, strict=True)):
                if not gone.isdisjoint(after):
                    keep[job] = False
                    gone.add(name)
        places = np.flatnonzero(keep).tolist()
        names = tuple(self.names[job] for job in places)
        afters = tuple(self.after[job] for job in places)
        return type(self)(names, afters, *(column[keep] for column in self[2:]))


def together(drafts: Sequence[Draft]) -> Draft:
    """Return all jobs in order of arrival; raise BadInput if two have the same name."""
    if len(drafts) == 1:
        return drafts[0]
    names = [name for draft in drafts for name in draft.names]
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise BadInput(f"workload: two jobs are named {twice}: give the trainings another name")
    columns = [
        np.concatenate(column) for column in zip(*(each[2:] for each in drafts), strict=True)
    ]
    order = np.argsort(columns[0], kind="stable")
    after = [each for draft in drafts for each in draft.after]
    return Draft(
        tuple(names[job] for job in order),
        tuple(after[job] for job in order),
        *(column[order] for column in columns),
    )


class Capacity(NamedTuple):
    """The total capacity of all nodes, and their shapes."""

    cpu_cores: float
    memory_bytes: float
    gpus: float
    speed: float  # mean of all cores, relative to the reference core
    # Cores, bytes and GPUs of one node, and the number of such nodes.
    shapes: tuple[tuple[float, float, float, int], ...]

    def busy_s(self, draft: Draft) -> Floats:
        """Return the seconds for which each job would fill the whole cluster, [3,J].

        Rows are cores, memory and GPUs; the row with the largest sum is the scarcest resource.
        """
        worker_s = draft.workers * draft.runtime_s / self.speed
        return np.stack(
            [
                draft.cpu_cores * worker_s / self.cpu_cores,
                draft.memory_bytes * worker_s / self.memory_bytes,
                draft.gpus * worker_s / max(self.gpus, 1.0),
            ]
        )

    def fitting(self, draft: Draft) -> Floats:
        """Return how many workers of each job fit on empty nodes at the same time, [J]."""
        found = np.zeros(draft.cpu_cores.size)
        for cpu_cores, memory_bytes, gpus, alike in self.shapes:
            with np.errstate(divide="ignore"):
                times = np.minimum(cpu_cores / draft.cpu_cores, memory_bytes / draft.memory_bytes)
            # A part of a GPU must be free on a single GPU.
            share = np.where(draft.gpus > 0.0, np.minimum(draft.gpus, 1.0), 1.0)
            fit = gpus * np.floor((1.0 + _EPSILON) / share) / np.maximum(draft.gpus, 1.0)
            times = np.minimum(times, np.where(draft.gpus > 0.0, fit, np.inf))
            found += np.floor(times * (1.0 + _EPSILON)) * alike
        return found
