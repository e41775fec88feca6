"""Plausible decisions among random nodes."""

import numpy as np

from greensched_policies.costs.cost import (
    CostModel,
    Floats,
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
)
from greensched_policies.encoding.weights import Weights

_GIB = 2.0**30


def random_decision(
    seed: int,
) -> tuple[NodeColumns, WorkloadColumns, ZoneColumns, CostModel, Weights]:
    """Return a plausible decision over up to 40 nodes."""
    dice = np.random.default_rng(seed)
    count = int(dice.integers(1, 40))

    def any_of(*choices: float) -> Floats:
        drawn: Floats = dice.choice(np.array(choices), (1, count))
        return drawn

    cores, memory, gpus = any_of(16.0, 64.0, 128.0), any_of(64 * _GIB, 512 * _GIB), any_of(0.0, 4.0)
    before = dice.random((1, count)) * any_of(0.0, 1.0)
    nodes = NodeColumns(
        cores, before, memory, memory * dice.random((1, count)), gpus,
        np.floor(gpus * dice.random((1, count))), any_of(50.0), any_of(300.0, 700.0),
        any_of(0.0, 1.0), any_of(0.7, 1.0, 1.9), any_of(1.0, 1.4), (before == 0.0) * 1.0,
    )  # fmt: skip
    workload = WorkloadColumns(
        *(np.array([[dice.uniform(low, high)]])
          for low, high in ((0.1, 16.0), (_GIB, 32 * _GIB), (0.0, 4.0), (30.0, 90_000.0)))
    )  # fmt: skip
    zones = ZoneColumns(
        any_of(*dice.uniform(20, 800, 3).tolist()), any_of(*dice.uniform(-50, 300, 3).tolist())
    )
    curves = np.sort(dice.uniform(50, 600, (2, 11)), axis=1).ravel()
    weights = Weights(*dice.uniform(0.0, 1.0, 3).tolist())
    return nodes, workload, zones, CostModel(curves, 0.5, 0.8, bool(dice.random() < 0.5)), weights
