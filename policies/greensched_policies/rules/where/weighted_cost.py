"""Rule: weighted money, carbon and slowdown; the prior that learned heads start from."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import (
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
    relative_cost = np.empty(nodes.shape[:2], dtype=np.float32)
    for row in range(nodes.shape[0]):
        by_energy, by_carbon = context[row, WEIGHT_ENERGY], context[row, WEIGHT_CARBON]
        by_performance = context[row, WEIGHT_PERFORMANCE]
        total = np.maximum(by_energy + by_carbon + by_performance, np.float32(LEAST_WEIGHT))
        relative_cost[row] = (
            nodes[row, :, COST] * (by_energy / total)
            + nodes[row, :, CARBON] * (by_carbon / total)
            + nodes[row, :, SLOWDOWN] * (by_performance / total)
        )
    return relative_cost
