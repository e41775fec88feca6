"""Rule: the candidate nearest to the ideal and farthest from the worst."""

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
    to_ideal = np.zeros(nodes.shape[:2], dtype=np.float32)
    to_worst = np.zeros(nodes.shape[:2], dtype=np.float32)
    for feature, weight in CRITERIA:
        values = nodes[:, :, feature]
        length = np.sqrt((values * values).sum(axis=1))
        scale = context[:, weight] / np.maximum(length, np.float32(1e-12))
        weighted = values * scale[:, None]
        to_ideal += (weighted - weighted.min(axis=1)[:, None]) ** 2
        to_worst += (weighted.max(axis=1)[:, None] - weighted) ** 2
    to_ideal = np.sqrt(to_ideal)
    to_worst = np.sqrt(to_worst)
    apart = to_ideal + to_worst
    is_same = apart == 0.0
    closeness = to_worst / np.where(is_same, np.float32(1.0), apart)
    return np.where(is_same, np.float32(1.0), np.float32(1.5) - closeness)
