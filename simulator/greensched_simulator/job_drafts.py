"""Jobs on their way into a world, and what the cluster has to offer them."""

from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from greensched_policies.cost import Floats


class Draft(NamedTuple):
    """Jobs in order of arrival; one float64 [J] array per column."""

    names: tuple[str, ...]
    arrival_s: Floats  # since the scenario's start
    runtime_s: Floats  # on the reference core
    expected_s: Floats  # the runtime that its owner told, else the true one
    cpu_cores: Floats
    memory_bytes: Floats
    gpus: Floats  # boards

    def chosen(self, keep: npt.NDArray[np.bool_]) -> Self:
        """Return the jobs for which `keep` ([J]) is true, in their order."""
        names = tuple(name for name, kept in zip(self.names, keep, strict=True) if kept)
        return type(self)(names, *(column[keep] for column in self[1:]))


class Capacity(NamedTuple):
    """What all nodes offer together, and which shapes of nodes there are."""

    cpu_cores: float
    memory_bytes: float
    gpus: float
    speed: float  # mean of all cores, relative to the reference core
    shapes: tuple[tuple[float, float, float], ...]  # cores, bytes and boards of one node

    def busy_s(self, draft: Draft) -> Floats:
        """Return the seconds for which each job takes up the whole cluster, [3,J].

        Rows are cores, memory and boards; the row with the largest sum is the scarcest resource.
        """
        runtime_s = draft.runtime_s / self.speed
        return np.stack(
            [
                draft.cpu_cores * runtime_s / self.cpu_cores,
                draft.memory_bytes * runtime_s / self.memory_bytes,
                draft.gpus * runtime_s / max(self.gpus, 1.0),
            ]
        )
