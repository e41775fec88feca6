"""Relative costs → kube-scheduler's scores 0..10, by the library."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.library.loading import address_of, call

BEST_SCORE = 10  # MaxExtenderPriority in kube-scheduler's extender API v1
NOISE = 0.01  # costs that differ by less than this share of the cheapest are equal


class Scores(NamedTuple):
    """Scores of N nodes, and the best of them."""

    scores: npt.NDArray[np.int8]  # [N] 0..10
    best: int  # place of the first of the cheapest; NO_BEST: all score the same


def spread_scores(relative_cost: npt.NDArray[np.floating]) -> Scores:
    """Score [N] costs: 10 within 1 % of the cheapest, 0 for the most expensive.

    Between the two, score = 9 − floor(9 · √x), where x is the position from the 1 % edge, 0, to the
    most expensive, 1. The root spends most of the ten steps on the cheap end, where the choice is
    made. All are 10 when the whole spread is within 1 % of the cheapest's magnitude. A cost that is
    not finite scores 0; if none is finite all are 0. A cheaper node never scores lower.
    """
    cost = np.ascontiguousarray(relative_cost, np.float32)
    scores, best = np.empty(cost.size, np.int8), np.empty(1, np.int64)
    results = [address_of(scores, np.int8), address_of(best, np.int64)]
    call("spread_scores", [cost.size, address_of(cost, np.float32), *results], [])
    return Scores(scores, int(best[0]))
