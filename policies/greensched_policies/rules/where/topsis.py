"""Rule: the candidate nearest to the ideal and farthest from the worst."""

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

CRITERIA = ((COST, WEIGHT_ENERGY), (CARBON, WEIGHT_CARBON), (SLOWDOWN, WEIGHT_PERFORMANCE))


def topsis(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 1.5 less the closeness to the ideal candidate, [B,N], within 0.5 … 1.5.

    Technique for Order Preference by Similarity to Ideal Solution (Hwang and Yoon, "Multiple
    Attribute Decision Making", Springer 1981) over money, carbon and slowdown, all to be
    small, weighted by the context, each criterion scaled to unit length per decision. The
    baseline of energy-aware Kubernetes schedulers such as EcoKube (TDIS 2026). Candidates
    that do not differ in any weighted criterion all get 1.
    """
    relative_cost = np.ones(nodes.shape[:2], dtype=np.float32)
    for row in range(nodes.shape[0]):
        to_ideal = np.zeros(nodes.shape[1], dtype=np.float32)  # squared distances
        to_worst = np.zeros(nodes.shape[1], dtype=np.float32)
        for feature, weight in CRITERIA:
            values = nodes[row, :, feature]
            length = np.sqrt((values * values).sum())
            weighted = values * (context[row, weight] / np.maximum(length, np.float32(1e-12)))
            to_ideal += (weighted - weighted.min()) ** 2
            to_worst += (weighted.max() - weighted) ** 2
        apart = np.sqrt(to_ideal) + np.sqrt(to_worst)
        if apart.min() > 0.0:  # zero for one is zero for all: nobody differs
            relative_cost[row] = np.float32(1.5) - np.sqrt(to_worst) / apart
    return relative_cost
