"""The start times that a `when` policy chooses among, for one workload or many."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats


class SlotColumns(NamedTuple):
    """The candidate starts of B workloads, [B,S]; the first is now, and all values are finite.

    If several zones can take the workload, the grid is that of the zone with the least weighted
    cost over the run. If a signal has no data at all, its columns are all 1.
    """

    wait_s: Floats  # from now until the start
    runtime_s: Floats  # expected in that zone
    carbon_at_start: Floats  # g/kWh
    carbon_over_run: Floats  # g/kWh, mean over the expected run
    price_at_start: Floats  # per MWh
    price_over_run: Floats  # per MWh, mean over the expected run
    weighted_over_run: Floats  # money and carbon of the run, relative, weighted; lower is better
    # Highest share of the zone's cores that run or are planned, or of its GPUs times GPU_SHARE.
    busiest_over_run: Floats
    completion: Floats  # the time from now until the end, relative, weighted by performance


# Percentile of the values at the candidate starts; GAIA's artifact takes it for Ecovisor.
THRESHOLD_PERCENT = 30
# As a share: sums of requests differ by the order in which they were added, and thrice 0.1 is more
# than 0.3.
SUM_ROUNDING = 1e-9
# A zone is full above nine tenths, before its last core or byte is requested, because what is free
# is fragmented. GPUs are not: their shares are multiplied, so that the last one fills the zone.
GPU_SHARE = 0.9
FULL = GPU_SHARE * (1.0 + SUM_ROUNDING)
# Times the largest difference of costs, so that a start with room always wins.
OVERLOAD_COST = 10.0


def has_room(used: Floats, capacity: float, more: float) -> bool:
    """Return whether a zone has room for cores or memory kept in some slots, [S]: see `FULL`.

    `more` are to be kept too. There is always room for what is not planned, [0].
    """
    return bool(used.size == 0 or used.max() + more <= FULL * capacity)


def has_gpus(gpus: Floats, capacity: float, more: float) -> bool:
    """Return whether a zone has the GPUs that are kept in some slots, [S] or [0], and `more`."""
    return bool(gpus.size == 0 or gpus.max() + more <= capacity * (1.0 + SUM_ROUNDING))


def with_overload(weighted: Floats, busiest: Floats, spread: Floats | float) -> Floats:
    """Return weighted relative costs plus a cost of planning beyond the capacity, same shape.

    `spread` is the largest difference of the weighted costs; with it any start with room costs less
    than any without. Takes numbers too.
    """
    return weighted + OVERLOAD_COST * (1.0 + spread) * busiest * (busiest > FULL)


def spread_of(weighted: Floats) -> Floats:
    """Return the difference between the largest and smallest value of each row, [B,1]."""
    spread = np.empty((weighted.shape[0], 1))
    for row in range(weighted.shape[0]):
        spread[row, 0] = np.max(weighted[row]) - np.min(weighted[row])
    return spread


def wait_until_low(wait_s: Floats, values: Floats) -> Floats:
    """Return the wait of each start; starts with a high value cost more than all others, [B,S].

    A value is high above the 30th percentile of its row, so the lowest never is. Of high values
    the later cost less: work that has to run in some of them takes the last.
    """
    cost = wait_s.copy()
    for row in range(values.shape[0]):
        rising = np.sort(values[row])
        threshold = rising[(rising.size - 1) * THRESHOLD_PERCENT // 100]
        late = 1.0 + 2.0 * np.max(wait_s[row]) - wait_s[row]
        cost[row] = np.where(values[row] > threshold, late, wait_s[row])
    return cost
