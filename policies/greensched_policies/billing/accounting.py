"""The bill of a recorded schedule: energy, money and carbon per node, split by its activity.

It also gives each placement's share of the active part.

The bill is one pass over the schedule and takes no decisions. Between the moments of a node's
timeline nothing changes, so the integral is exact: there is no time step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.billing.timelines import (
    NO_CAPS,
    NO_SLEEPS,
    BilledNodes,
    Caps,
    NodeTimeline,
    Placements,
    Sleeps,
    ZoneSeries,
    joules_of,
    running,
    timelines_of,
)
from greensched_policies.billing.transfers import Transfers, transfer_grams
from greensched_policies.costs.cost import JOULES_PER_MWH, CostModel, Floats, Integers

Amount = TypeVar("Amount", float, Floats)


@dataclass(frozen=True)
class BilledParts(Generic[Amount]):
    """Energy, money and carbon, each split by a node's activity; active is what exceeds idle.

    Money is in the currency of the prices.
    """

    energy_active_j: Amount
    energy_idle_j: Amount
    energy_sleep_j: Amount
    energy_wake_j: Amount
    energy_transfer_j: Amount  # of the network, to transfer data to the work there
    cost_active: Amount
    cost_idle: Amount
    cost_sleep: Amount
    cost_wake: Amount
    cost_transfer: Amount
    carbon_active_g: Amount
    carbon_idle_g: Amount
    carbon_sleep_g: Amount
    carbon_wake_g: Amount
    carbon_transfer_g: Amount


PARTS = tuple(each.name for each in fields(BilledParts))


@dataclass(frozen=True)
class Bill(BilledParts[Floats]):
    """What each node used within the window, [N].

    Money is NaN where a price was missing, and grams where a carbon intensity was. All are NaN
    where the PUE depends on weather that was missing.
    """

    is_used: npt.NDArray[np.bool_]  # ran something within the window


@dataclass(frozen=True)
class BillTotal(BilledParts[float]):
    """A bill summed over its nodes."""

    nodes_used: int

    @property
    def energy_j(self) -> float:
        """Return the joules at the meter, of all activities."""
        used_j = self.energy_active_j + self.energy_idle_j + self.energy_sleep_j
        return used_j + self.energy_wake_j + self.energy_transfer_j

    @property
    def cost(self) -> float:
        """Return the money for all energy and transfers."""
        used = self.cost_active + self.cost_idle + self.cost_sleep + self.cost_wake
        return used + self.cost_transfer

    @property
    def carbon_g(self) -> float:
        """Return the grams of all energy, operational and location-based."""
        used_g = self.carbon_active_g + self.carbon_idle_g
        return used_g + self.carbon_sleep_g + self.carbon_wake_g + self.carbon_transfer_g


class PlacementBill(NamedTuple):
    """What each placement used within the window, [P]: its share of its node's active part."""

    energy_active_j: Floats  # NaN where the weather was missing while it drew power
    cost_active: Floats  # NaN where a price was missing, likewise
    carbon_active_g: Floats  # NaN where a carbon intensity was missing, likewise


def bill_schedule(
    nodes: BilledNodes,
    placements: Placements,
    zones: Sequence[ZoneSeries],
    window_s: tuple[float, float],
    model: CostModel,
    sleeps: Sleeps = NO_SLEEPS,
    caps: Caps = NO_CAPS,
) -> Bill:
    """Return the bill of the schedule from `window_s[0]` to `window_s[1]`, in seconds.

    Idle watts are the node's at no load, with its GPUs. They are billed for the whole window except
    `sleeps`, or, with `empty_nodes_sleep`, only while something runs. If carbon or price is missing
    for any part of a node's use, that node's carbon or cost is NaN, never too small. Raises
    ValueError when the window ends before it starts, a placement's node does not exist, or a
    placement runs on a node that sleeps or wakes.
    """
    columns = np.zeros((len(PARTS), nodes.cpu_capacity.size))
    is_used = np.zeros(nodes.cpu_capacity.size, dtype=np.bool_)
    timelines = timelines_of(nodes, placements, zones, window_s, model, sleeps, caps)
    for row, timeline in enumerate(timelines):
        columns[:, row] = _integrate(timeline)
        is_used[row] = timeline.mine.size > 0
    return Bill(**dict(zip(PARTS, columns, strict=True)), is_used=is_used)


def add_transfers(
    bill: Bill, transfers: Transfers, zone: Integers, zones: Sequence[ZoneSeries]
) -> Bill:
    """Return the bill with the transfers to its nodes, whose zones are `zone`, [N].

    A node's grams are NaN where a carbon intensity is missing for a transfer to it.
    """
    grams = transfer_grams(transfers, zone[transfers.node], zones)
    of_nodes = np.zeros((3, zone.size))
    for column, each in zip(of_nodes, (transfers.energy_j, transfers.cost, grams), strict=True):
        np.add.at(column, transfers.node, each)
    energy_j, cost, carbon_g = of_nodes
    return replace(bill, energy_transfer_j=energy_j, cost_transfer=cost, carbon_transfer_g=carbon_g)


def bill_placements(
    nodes: BilledNodes,
    placements: Placements,
    zones: Sequence[ZoneSeries],
    window_s: tuple[float, float],
    model: CostModel,
    caps: Caps = NO_CAPS,
) -> PlacementBill:
    """Return what each placement used from `window_s[0]` to `window_s[1]`, in their order.

    At every moment the CPU's watts above idle are divided by cores requested; a placement's GPUs
    are billed for what they draw. So the shares on a node add up to its active part of
    `bill_schedule`, except for the rounding of running sums, about 1e-12 of the node's total. Idle
    watts belong to no placement. Raises ValueError as `bill_schedule` does.
    """
    columns = np.zeros((3, placements.node.size))
    for timeline in timelines_of(nodes, placements, zones, window_s, model, NO_SLEEPS, caps):
        if timeline.mine.size:
            columns[:, timeline.mine] = _shares(timeline, placements)
    return PlacementBill(*columns)


def total_bill(bill: Bill) -> BillTotal:
    """Sum a bill over its nodes; NaN where any node's part is not known."""
    sums = {name: float(getattr(bill, name).sum()) for name in PARTS}
    return BillTotal(**sums, nodes_used=int(bill.is_used.sum()))


def _integrate(timeline: NodeTimeline) -> list[float]:
    """Return joules, money and grams, each active, idle, asleep, waking, and 0 for transfers."""
    active_w = timeline.cpu_w + timeline.gpu_w
    each_w = (active_w, timeline.idle_w, timeline.sleep_w, timeline.wake_w)
    parts = [_integrals(watts, timeline) for watts in each_w]
    return [each for column in zip(*parts, strict=True) for each in (*column, 0.0)]


def _integrals(watts: Floats, timeline: NodeTimeline) -> tuple[float, float, float]:
    """Return joules, money and grams of a node's watts over time."""
    if not watts.any():
        return 0.0, 0.0, 0.0
    energy_j = joules_of(watts, timeline.pue, timeline.length_s)
    return (
        float(energy_j.sum()),
        _weigh(energy_j, timeline.price_per_mwh) / JOULES_PER_MWH,
        _weigh(energy_j, timeline.carbon_g_per_kwh) / JOULES_PER_KWH,
    )


def _weigh(energy_j: Floats, values: Floats) -> float:
    """Sum energy times value; time without energy needs no value."""
    is_used = energy_j != 0.0
    if is_used.all():
        return float((energy_j * values).sum())
    return float((energy_j[is_used] * values[is_used]).sum())


def _shares(timeline: NodeTimeline, placements: Placements) -> Floats:
    """Return joules, money and grams of each placement on one node, [3,M]."""
    cores = placements.cpu_cores[timeline.mine]
    has_request = (cores > 0.0).astype(np.float64)
    requesting = running(timeline.begins, timeline.ends, has_request, timeline.cores.size + 1)
    # Sums of whole numbers are exact; sums of cores may not cancel, or may lose tiny values.
    has_cores = (requesting > 0.5) & (timeline.cores > 0.0)
    core_w = np.divide(
        timeline.cpu_w, timeline.cores, np.zeros(timeline.cores.size), where=has_cores
    )
    core_j = joules_of(core_w, timeline.pue, timeline.length_s)
    parts = [(core_j, cores)]
    for cap, gpu_w in enumerate(timeline.gpu_w_of):
        is_set = (timeline.gpu_cap == cap).astype(np.float64)
        parts.append((joules_of(is_set, timeline.pue, timeline.length_s), gpu_w))
    known = np.ones(core_j.size)
    return np.stack([
        sum(_over(timeline, each_j, values, amounts) for each_j, amounts in parts) / unit
        for values, unit in (
            (known, 1.0),
            (timeline.price_per_mwh, JOULES_PER_MWH),
            (timeline.carbon_g_per_kwh, JOULES_PER_KWH),
        )
    ])  # fmt: skip


def _over(timeline: NodeTimeline, joules_each: Floats, values: Floats, amounts: Floats) -> Floats:
    """Sum energy times value over each placement's span, for its `amounts` of cores or watts."""
    products = np.where(joules_each == 0.0, 0.0, joules_each * values)
    is_unknown = np.isnan(products)
    sums = _running_sums(np.where(is_unknown, 0.0, products))
    found = amounts * (sums[timeline.ends] - sums[timeline.begins])
    if is_unknown.any():
        gaps = _running_sums(is_unknown.astype(np.float64))
        found[(gaps[timeline.ends] > gaps[timeline.begins]) & (amounts != 0.0)] = np.nan
    return found


def _running_sums(values: Floats) -> Floats:
    return np.concatenate((np.zeros(1), np.cumsum(values)))
