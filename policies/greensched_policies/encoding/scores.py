"""Converts relative costs to kube-scheduler's scores 0..10, without inflating noise."""

import math

import numpy as np
import numpy.typing as npt

BEST_SCORE = 10  # MaxExtenderPriority in kube-scheduler's extender API v1
NOISE = 0.01  # costs that differ by less than this share of the cheapest are equal


def spread_scores(relative_cost: npt.NDArray[np.floating]) -> npt.NDArray[np.int8]:
    """Score [N] costs: 10 within 1 % of the cheapest, 0 for the most expensive, int8 [N].

    Between the two, score = 9 − floor(9 · √x), where x is the position from the 1 % edge, 0, to the
    most expensive, 1. The root spends most of the ten steps on the cheap end, where the choice is
    made. All are 10 when the whole spread is within 1 % of the cheapest's magnitude. A cost that is
    not finite scores 0; if none is finite all are 0. A cheaper node never scores lower.
    """
    cost = np.asarray(relative_cost)
    if cost.size == 0:
        return np.zeros(0, dtype=np.int8)
    cheapest, highest = float(cost.min()), float(cost.max())
    if not math.isfinite(cheapest) or not math.isfinite(highest):
        return _scores_of_the_finite(cost)
    edge = cheapest + NOISE * abs(cheapest)
    if highest <= edge:
        return np.full(cost.shape, BEST_SCORE, dtype=np.int8)
    nearest = cost.dtype.type(edge)
    position = cost - nearest
    is_best = position <= 0.0
    np.maximum(position, 0.0, out=position)
    position /= (cost.dtype.type(highest) - nearest) or 1.0
    np.sqrt(position, out=position)
    position *= BEST_SCORE - 1
    scores: npt.NDArray[np.int8] = np.int8(BEST_SCORE - 1) - position.astype(np.int8)
    scores += is_best
    return scores


def _scores_of_the_finite(cost: npt.NDArray[np.floating]) -> npt.NDArray[np.int8]:
    is_finite = np.isfinite(cost)
    scores = np.zeros(cost.shape, dtype=np.int8)
    scores[is_finite] = spread_scores(cost[is_finite])
    return scores
