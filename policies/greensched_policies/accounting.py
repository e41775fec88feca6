"""The bill of a recorded schedule: energy, money and carbon per node, active and idle apart.

One pass over what happened, apart from any decision. Power only changes when a workload
starts or ends and the grid only at the steps of its series, so the integral between those
moments is exact: there is no time step. The formulas are those of `cost`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.cost import (
    CURVE_POINTS,
    JOULES_PER_KWH,
    JOULES_PER_MWH,
    LEAST_CPU_CORES,
    CostModel,
    Floats,
    watts_at,
)

Integers = npt.NDArray[np.int64]


class BilledNodes(NamedTuple):
    """The machines of the schedule, [N]."""

    cpu_capacity: Floats  # cores
    curve_class: Integers  # row of the model's curve table
    gpu_capacity: Floats  # boards
    gpu_idle_w: Floats  # watts per board
    gpu_peak_w: Floats  # watts per board
    pue: Floats
    zone: Integers  # index into the series; -1: unknown, money and carbon are NaN


class Placements(NamedTuple):
    """What ran where and when, [P]; the order carries no meaning."""

    node: Integers  # index into the nodes
    start_s: Floats
    end_s: Floats  # infinity: still running
    cpu_cores: Floats  # requested
    gpus: Floats


class ZoneSeries(NamedTuple):
    """A grid zone's steps, [T]: each value holds until the next time, the last one for ever."""

    times_s: Floats  # ascending; before the first there is no data
    carbon_g_per_kwh: Floats  # NaN: no data
    price_per_mwh: Floats  # NaN: no data; may be negative


class Bill(NamedTuple):
    """What each node used within the window, [N]; active is what lies above idle."""

    energy_active_j: Floats
    energy_idle_j: Floats
    cost_active: Floats  # in the currency of the prices; NaN where a price was missing
    cost_idle: Floats
    carbon_active_g: Floats  # NaN where a carbon intensity was missing
    carbon_idle_g: Floats
    is_used: npt.NDArray[np.bool_]  # ran something within the window


class BillTotal(NamedTuple):
    """A bill summed over its nodes."""

    energy_active_j: float
    energy_idle_j: float
    cost_active: float
    cost_idle: float
    carbon_active_g: float
    carbon_idle_g: float
    nodes_used: int


class _Course(NamedTuple):
    """What one node did between moments, [K]."""

    start_s: Floats
    length_s: Floats
    active_w: Floats
    idle_w: Floats


def bill_schedule(
    nodes: BilledNodes,
    placements: Placements,
    zones: Sequence[ZoneSeries],
    window_s: tuple[float, float],
    model: CostModel,
) -> Bill:
    """Return the bill of the schedule from `window_s[0]` to `window_s[1]`, in seconds.

    Idle watts are the node's at no load, with its boards: billed for the whole window, or,
    with `empty_nodes_sleep`, only while something runs. Where carbon or price is missing for
    any part of a node's use, that node's carbon or cost is NaN, never too small.
    Raises ValueError when the window ends before it starts or a placement names no node.
    """
    if not window_s[0] <= window_s[1]:
        raise ValueError(f"the window ends before it starts: {window_s}")
    if ((placements.node < 0) | (placements.node >= nodes.cpu_capacity.size)).any():
        raise ValueError("a placement is on a node that does not exist")
    start_s = np.maximum(placements.start_s, window_s[0])
    end_s = np.minimum(placements.end_s, window_s[1])
    kept = np.flatnonzero(end_s > start_s)
    # A total order of the placements themselves, so that sums do not depend on theirs.
    keys = [column[kept] for column in (placements.gpus, placements.cpu_cores, end_s, start_s)]
    kept = kept[np.lexsort((*keys, placements.node[kept]))]
    bounds = np.searchsorted(placements.node[kept], np.arange(nodes.cpu_capacity.size + 1))
    columns = np.zeros((6, nodes.cpu_capacity.size))
    for row in range(nodes.cpu_capacity.size):
        mine = kept[bounds[row] : bounds[row + 1]]
        series = zones[nodes.zone[row]] if nodes.zone[row] >= 0 else None
        moments = np.concatenate(
            (start_s[mine], end_s[mine], _steps_within(series, window_s), np.array(window_s))
        )
        course = _course(
            nodes, row, np.unique(moments), (start_s[mine], end_s[mine]), placements, mine, model
        )
        columns[:, row] = _integrate(course, series)
    return Bill(
        energy_active_j=columns[0],
        energy_idle_j=columns[1],
        cost_active=columns[2],
        cost_idle=columns[3],
        carbon_active_g=columns[4],
        carbon_idle_g=columns[5],
        is_used=np.diff(bounds) > 0,
    )


def total_bill(bill: Bill) -> BillTotal:
    """Sum a bill over its nodes; NaN where any node's part is not known."""
    return BillTotal(
        energy_active_j=float(bill.energy_active_j.sum()),
        energy_idle_j=float(bill.energy_idle_j.sum()),
        cost_active=float(bill.cost_active.sum()),
        cost_idle=float(bill.cost_idle.sum()),
        carbon_active_g=float(bill.carbon_active_g.sum()),
        carbon_idle_g=float(bill.carbon_idle_g.sum()),
        nodes_used=int(bill.is_used.sum()),
    )


def _steps_within(series: ZoneSeries | None, window_s: tuple[float, float]) -> Floats:
    if series is None:
        return np.zeros(0)
    return series.times_s[(series.times_s > window_s[0]) & (series.times_s < window_s[1])]


def _course(
    nodes: BilledNodes,
    row: int,
    moments: Floats,
    span_s: tuple[Floats, Floats],
    placements: Placements,
    mine: npt.NDArray[np.intp],
    model: CostModel,
) -> _Course:
    """Return one node's watts between `moments`, which hold every start and end of `mine`."""
    begins = np.searchsorted(moments, span_s[0])
    ends = np.searchsorted(moments, span_s[1])
    running = _running(begins, ends, np.ones(mine.size), moments.size)
    is_empty = running < 0.5  # whole numbers: exact, unlike sums of cores
    cores = np.where(
        is_empty, 0.0, _running(begins, ends, placements.cpu_cores[mine], moments.size)
    )
    boards = np.where(is_empty, 0.0, _running(begins, ends, placements.gpus[mine], moments.size))
    capacity = max(float(nodes.cpu_capacity[row]), LEAST_CPU_CORES)
    utilisation = np.clip(cores * (model.utilisation_ratio / capacity), 0.0, 1.0)
    starts = np.full(utilisation.shape, int(nodes.curve_class[row]) * CURVE_POINTS)
    cpu_idle_w = model.curve_watts[starts[0]] if starts.size else 0.0
    board_w = (nodes.gpu_peak_w[row] - nodes.gpu_idle_w[row]) * model.gpu_ratio
    active_w = watts_at(model.curve_watts, starts, utilisation) - cpu_idle_w + boards * board_w
    idle_w = np.full(
        utilisation.shape, cpu_idle_w + nodes.gpu_capacity[row] * nodes.gpu_idle_w[row]
    )
    if model.empty_nodes_sleep:
        idle_w[is_empty] = 0.0
    pue = nodes.pue[row]
    return _Course(moments[:-1], np.diff(moments), active_w * pue, idle_w * pue)


def _running(
    begins: npt.NDArray[np.intp], ends: npt.NDArray[np.intp], amounts: Floats, moments: int
) -> Floats:
    """Return how much runs after each moment but the last."""
    change = np.zeros(moments)
    np.add.at(change, begins, amounts)
    np.subtract.at(change, ends, amounts)
    return np.cumsum(change)[:-1]


def _integrate(course: _Course, series: ZoneSeries | None) -> tuple[float, ...]:
    """Return joules, money and grams, each active and idle."""
    active_j = course.active_w * course.length_s
    idle_j = course.idle_w * course.length_s
    if series is None:
        carbon = price = np.full(active_j.shape, np.nan)
    else:
        step = np.searchsorted(series.times_s, course.start_s, side="right") - 1
        carbon, price = (
            np.where(step >= 0, values[np.maximum(step, 0)], np.nan)
            for values in (series.carbon_g_per_kwh, series.price_per_mwh)
        )
    return (
        float(active_j.sum()),
        float(idle_j.sum()),
        _weigh(active_j, price) / JOULES_PER_MWH,
        _weigh(idle_j, price) / JOULES_PER_MWH,
        _weigh(active_j, carbon) / JOULES_PER_KWH,
        _weigh(idle_j, carbon) / JOULES_PER_KWH,
    )


def _weigh(energy_j: Floats, values: Floats) -> float:
    """Sum energy times value; time without energy needs no value."""
    is_used = energy_j != 0.0
    return float((energy_j[is_used] * values[is_used]).sum())
