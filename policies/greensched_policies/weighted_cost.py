"""Rule: weighted money, carbon and slowdown; the prior that learned heads start from."""

import numpy as np
import numpy.typing as npt

from greensched_policies.observation import (
    CARBON,
    COST,
    SLOWDOWN,
    WEIGHT_CARBON,
    WEIGHT_ENERGY,
    WEIGHT_PERFORMANCE,
)

LEAST_WEIGHT = 1e-6  # weights that are all zero give 0 for everyone: no preference


def weighted_cost(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return (w_energy·cost + w_carbon·carbon + w_perf·slowdown) / (sum of weights), [B,N].

    The reward of training and reports, r = −(w_energy·cost + w_carbon·carbon + w_perf·penalty),
    for one placement and relative to its candidates: about 1 for an average candidate.
    """
    by_energy = context[:, WEIGHT_ENERGY]
    by_carbon = context[:, WEIGHT_CARBON]
    by_performance = context[:, WEIGHT_PERFORMANCE]
    total = np.maximum(by_energy + by_carbon + by_performance, np.float32(LEAST_WEIGHT))
    relative_cost: npt.NDArray[np.float32] = nodes[:, :, COST] * (by_energy / total)[:, None]
    relative_cost += nodes[:, :, CARBON] * (by_carbon / total)[:, None]
    relative_cost += nodes[:, :, SLOWDOWN] * (by_performance / total)[:, None]
    return relative_cost
