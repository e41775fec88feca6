"""Data that is brought to where work runs: what that adds to a candidate, and what it is billed.

Energy is that of the network between two grid zones, outside of both sites: their PUE, panels and
batteries have no part in it, and its money is what is paid for each byte. Of the carbon, half is
that of either zone's grid.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from greensched_policies.billing.courses import ZoneSeries, held, steps_at
from greensched_policies.costs.cost import JOULES_PER_KWH, Floats, Integers, PlacementCost


class TransferColumns(NamedTuple):
    """What bringing a workload's data to each candidate takes, [B,N]; 0 where it lies there."""

    wait_s: Floats
    energy_j: Floats
    cost: Floats  # in the currency of the prices
    carbon_g: Floats


def with_transfer(cost: PlacementCost, transfer: TransferColumns) -> PlacementCost:
    """Return the marginal cost with what it takes that the workload's data is there.

    Takes numbers as well as arrays, as `placement_cost` does.
    """
    return PlacementCost(
        power_w=cost.power_w,
        runtime_s=cost.runtime_s + transfer.wait_s,
        energy_j=cost.energy_j + transfer.energy_j,
        cost=cost.cost + transfer.cost,
        carbon_g=cost.carbon_g + transfer.carbon_g,
        cpu_after=cost.cpu_after,
    )


class Transfers(NamedTuple):
    """What was brought to which node, and when, [M]; the order carries no meaning."""

    node: Integers  # index into the nodes
    from_zone: Integers  # index into the series
    start_s: Floats
    end_s: Floats
    energy_j: Floats  # of the network
    cost: Floats  # in the currency of the prices


NO_TRANSFERS = Transfers(np.zeros(0, np.int64), np.zeros(0, np.int64), *(np.zeros(0),) * 4)


def transfer_grams(transfers: Transfers, to_zone: Integers, zones: Sequence[ZoneSeries]) -> Floats:
    """Return the grams of each transfer, [M]; NaN where a carbon intensity is missing.

    Its joules are spread evenly over its time, half on either zone's grid.
    """
    intensity = np.zeros(transfers.node.size)
    for zone, series in enumerate(zones):
        for end in (transfers.from_zone, to_zone):
            mine = np.flatnonzero(end == zone)
            span_s = transfers.start_s[mine], transfers.end_s[mine]
            intensity[mine] += 0.5 * _mean_over(series.times_s, series.carbon_g_per_kwh, *span_s)
    grams = transfers.energy_j / JOULES_PER_KWH * intensity
    return np.where(transfers.energy_j == 0.0, 0.0, grams)  # which needs no intensity


def _mean_over(times_s: Floats, values: Floats, start_s: Floats, end_s: Floats) -> Floats:
    """Return the means of what holds from each time to the next; NaN with any part missing."""
    first, last = steps_at(start_s, times_s), steps_at(end_s, times_s)
    second = np.minimum(first + 1, times_s.size - 1)

    def over(each: Floats) -> Floats:
        """Return the mean by the first step, the last one, and whole ones between."""
        sums = np.concatenate([np.zeros(1), np.cumsum(each[:-1] * np.diff(times_s))])
        parts = (times_s[second] - start_s) * each[first] + (end_s - times_s[last]) * each[last]
        parts += sums[last] - sums[second]
        return np.divide(parts, end_s - start_s, held(first, each), where=first < last)

    is_missing = np.isnan(values)
    gaps = over(is_missing.astype(np.float64))
    return np.where((first < 0) | (gaps > 0.0), np.nan, over(np.where(is_missing, 0.0, values)))
