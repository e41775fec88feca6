"""Transfers of data to where work runs: their marginal cost for a candidate, and their bill.

The energy is that of the network between two grid zones, outside both sites, so their PUE, panels
and batteries do not apply. The money is the price of the bytes. Half of the carbon comes from each
zone's grid.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.billing.timelines import ZoneSeries, held, steps_at
from greensched_policies.costs.cost import Floats, Integers, PlacementCost


class TransferColumns(NamedTuple):
    """The cost of a transfer of a workload's data to each candidate, [B,N]; 0 if it is there."""

    wait_s: Floats
    energy_j: Floats
    cost: Floats  # in the currency of the prices
    carbon_g: Floats


def with_transfer(cost: PlacementCost, transfer: TransferColumns) -> PlacementCost:
    """Return the marginal cost plus that of the transfer of the workload's data.

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
    """Transfers to nodes, and when, [M]; the order carries no meaning."""

    node: Integers  # index into the nodes
    from_zone: Integers  # index into the series
    start_s: Floats
    end_s: Floats
    energy_j: Floats  # of the network
    cost: Floats  # in the currency of the prices


NO_TRANSFERS = Transfers(np.zeros(0, np.int64), np.zeros(0, np.int64), *(np.zeros(0),) * 4)


def transfer_grams(transfers: Transfers, to_zone: Integers, zones: Sequence[ZoneSeries]) -> Floats:
    """Return the grams of each transfer, [M]; NaN where a carbon intensity is missing.

    A transfer's joules are spread evenly over its time, half on each zone's grid.
    """
    intensity = np.zeros(transfers.node.size)
    if not intensity.size:
        return intensity
    for zone, series in enumerate(zones):
        for end in (transfers.from_zone, to_zone):
            mine = np.flatnonzero(end == zone)
            span_s = transfers.start_s[mine], transfers.end_s[mine]
            intensity[mine] += 0.5 * _mean_over(series.times_s, series.carbon_g_per_kwh, *span_s)
    grams = transfers.energy_j / JOULES_PER_KWH * intensity
    return np.where(transfers.energy_j == 0.0, 0.0, grams)  # without joules no intensity is needed


def _mean_over(times_s: Floats, values: Floats, start_s: Floats, end_s: Floats) -> Floats:
    """Return the means of a step series over spans; NaN if any part is missing."""
    first, last = steps_at(start_s, times_s), steps_at(end_s, times_s)
    second = np.minimum(first + 1, times_s.size - 1)

    def over(each: Floats) -> Floats:
        """Return the mean by the first step, the last one, and the whole ones between."""
        sums = np.concatenate([np.zeros(1), np.cumsum(each[:-1] * np.diff(times_s))])
        parts = (times_s[second] - start_s) * each[first] + (end_s - times_s[last]) * each[last]
        parts += sums[last] - sums[second]
        return np.divide(parts, end_s - start_s, held(first, each), where=first < last)

    is_missing = np.isnan(values)
    gaps = over(is_missing.astype(np.float64))
    return np.where((first < 0) | (gaps > 0.0), np.nan, over(np.where(is_missing, 0.0, values)))
