"""Converts relative costs to kube-scheduler's scores 0..10, without inflating noise."""

from typing import Any

import numpy as np
import numpy.typing as npt

from greensched_policies.compiling.compiled import borrowing
from greensched_policies.library.functions import NO_BEST
from greensched_policies.library.scores import BEST_SCORE, NOISE

_NO_COST = np.float32(np.inf)


@borrowing
def spread_scores(cost: npt.NDArray[np.float32], scores: npt.NDArray[np.int8]) -> int:
    """Fill in the scores, [N], of relative costs, [N]; `library/scores.py` has the rules.

    Return the place of the first of the cheapest, or NO_BEST if all score the same.
    """
    cheapest, highest, best = _NO_COST, -_NO_COST, NO_BEST
    for place in range(cost.size):
        each: Any = cost[place]
        if np.isfinite(each):
            if each < cheapest:
                cheapest, best = each, place
            highest = max(highest, each)
    edge = np.float64(cheapest) + NOISE * abs(np.float64(cheapest))
    nearest: Any = np.float32(edge)
    width = np.float32(highest) - nearest
    is_spread = np.float64(highest) > edge
    steps, least = np.float32(BEST_SCORE - 1), BEST_SCORE
    for place in range(cost.size):
        score = 0
        if np.isfinite(cost[place]):
            beyond = cost[place] - nearest
            score = BEST_SCORE
            if is_spread and beyond > np.float32(0.0):
                score = BEST_SCORE - 1 - int(np.sqrt(beyond / width) * steps)
        scores[place] = score
        least = min(least, score)
    return best if least < BEST_SCORE else NO_BEST
