"""The bill of a recorded schedule: energy, money and carbon per node, active and idle apart.

Beside it the active part's share of each placement.

One pass over what happened, apart from any decision. Power only changes when a workload
starts or ends and the grid only at the steps of its series, so the integral between those
moments is exact: there is no time step. The formulas are those of `cost`.
"""

from collections.abc import Iterator, Sequence
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
Places = npt.NDArray[np.intp]


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


class PlacementBill(NamedTuple):
    """What each placement used within the window, [P]: its share of its node's active part."""

    energy_active_j: Floats
    cost_active: Floats  # NaN where a price was missing while it drew power
    carbon_active_g: Floats  # NaN where a carbon intensity was missing while it drew power


class _Course(NamedTuple):
    """What one node did between moments, [K], and which of them each placement there spans, [M].

    Watts are the machine's, without PUE.
    """

    mine: Places  # [M] which placements they are, in an order that does not depend on theirs
    begins: Places  # [M] places of their starts among the moments
    ends: Places  # [M]
    start_s: Floats
    length_s: Floats
    cores: Floats  # requested by what runs
    boards: Floats
    cpu_w: Floats  # above idle
    board_w: float  # of one board, above idle
    idle_w: Floats
    pue: float
    carbon_g_per_kwh: Floats  # NaN: no data
    price_per_mwh: Floats


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
    columns = np.zeros((6, nodes.cpu_capacity.size))
    is_used = np.zeros(nodes.cpu_capacity.size, dtype=np.bool_)
    for row, course in enumerate(_courses(nodes, placements, zones, window_s, model)):
        columns[:, row] = _integrate(course)
        is_used[row] = course.mine.size > 0
    return Bill(
        energy_active_j=columns[0],
        energy_idle_j=columns[1],
        cost_active=columns[2],
        cost_idle=columns[3],
        carbon_active_g=columns[4],
        carbon_idle_g=columns[5],
        is_used=is_used,
    )


def bill_placements(
    nodes: BilledNodes,
    placements: Placements,
    zones: Sequence[ZoneSeries],
    window_s: tuple[float, float],
    model: CostModel,
) -> PlacementBill:
    """Return what each placement used from `window_s[0]` to `window_s[1]`, in their order.

    At every moment the CPU's watts above idle are shared out by cores requested, the boards' by
    boards requested. So the shares on a node add up to its active part of `bill_schedule`, but for
    the rounding of running sums: about 1e-12 of the node's whole. Idle watts are nobody's.
    Raises ValueError as `bill_schedule` does.
    """
    columns = np.zeros((3, placements.node.size))
    for course in _courses(nodes, placements, zones, window_s, model):
        if course.mine.size:
            columns[:, course.mine] = _shares(course, placements)
    return PlacementBill(*columns)


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


def _courses(
    nodes: BilledNodes,
    placements: Placements,
    zones: Sequence[ZoneSeries],
    window_s: tuple[float, float],
    model: CostModel,
) -> Iterator[_Course]:
    """Yield what each node did within the window, node after node."""
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
    steps_s = [_steps_within(series, window_s) for series in zones]
    for row in range(nodes.cpu_capacity.size):
        mine, zone = kept[bounds[row] : bounds[row + 1]], int(nodes.zone[row])
        series = zones[zone] if zone >= 0 else None
        steps = steps_s[zone] if zone >= 0 else np.zeros(0)
        span_s = (start_s[mine], end_s[mine])
        moments = np.unique(np.concatenate((*span_s, steps, np.array(window_s))))
        yield _course(nodes, row, moments, span_s, placements, mine, series, model)


def _steps_within(series: ZoneSeries, window_s: tuple[float, float]) -> Floats:
    return series.times_s[(series.times_s > window_s[0]) & (series.times_s < window_s[1])]


def _course(
    nodes: BilledNodes,
    row: int,
    moments: Floats,
    span_s: tuple[Floats, Floats],
    placements: Placements,
    mine: Places,
    series: ZoneSeries | None,
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
    cpu_w = watts_at(model.curve_watts, starts, utilisation) - cpu_idle_w
    idle_w = np.full(
        utilisation.shape, cpu_idle_w + nodes.gpu_capacity[row] * nodes.gpu_idle_w[row]
    )
    if model.empty_nodes_sleep:
        idle_w[is_empty] = 0.0
    return _Course(
        mine, begins, ends, moments[:-1], np.diff(moments), cores, boards, cpu_w, board_w, idle_w,
        nodes.pue[row], *_grid(series, moments[:-1]),
    )  # fmt: skip


def _running(begins: Places, ends: Places, amounts: Floats, moments: int) -> Floats:
    """Return how much runs after each moment but the last."""
    change = np.zeros(moments)
    np.add.at(change, begins, amounts)
    np.subtract.at(change, ends, amounts)
    return np.cumsum(change)[:-1]


def _grid(series: ZoneSeries | None, times_s: Floats) -> tuple[Floats, Floats]:
    """Return carbon intensity and price at some times; NaN where there is no data."""
    if series is None:
        return np.full(times_s.shape, np.nan), np.full(times_s.shape, np.nan)
    step = np.searchsorted(series.times_s, times_s, side="right") - 1
    carbon, price = (
        np.where(step >= 0, values[np.maximum(step, 0)], np.nan)
        for values in (series.carbon_g_per_kwh, series.price_per_mwh)
    )
    return carbon, price


def _integrate(course: _Course) -> tuple[float, ...]:
    """Return joules, money and grams, each active and idle."""
    active_w = course.cpu_w + course.boards * course.board_w
    active_j = active_w * course.pue * course.length_s
    idle_j = course.idle_w * course.pue * course.length_s
    carbon, price = course.carbon_g_per_kwh, course.price_per_mwh
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


def _shares(course: _Course, placements: Placements) -> Floats:
    """Return joules, money and grams of each placement on one node, [3,M]."""
    cores, boards = placements.cpu_cores[course.mine], placements.gpus[course.mine]
    asks = (cores > 0.0).astype(np.float64)
    asking = _running(course.begins, course.ends, asks, course.cores.size + 1)
    # Whole numbers are exact; sums of cores never quite cancel, or swallow what is tiny.
    has_cores = (asking > 0.5) & (course.cores > 0.0)
    core_w = np.divide(course.cpu_w, course.cores, np.zeros(course.cores.size), where=has_cores)
    core_j = core_w * course.pue * course.length_s
    board_j = course.board_w * course.pue * course.length_s
    known = np.ones(core_j.size)
    return np.stack([
        (_over(course, core_j, values, cores) + _over(course, board_j, values, boards)) / unit
        for values, unit in (
            (known, 1.0),
            (course.price_per_mwh, JOULES_PER_MWH),
            (course.carbon_g_per_kwh, JOULES_PER_KWH),
        )
    ])  # fmt: skip


def _over(course: _Course, joules_each: Floats, values: Floats, amounts: Floats) -> Floats:
    """Sum energy times value over the span of each placement, which has `amounts` parts of it."""
    products = np.where(joules_each == 0.0, 0.0, joules_each * values)
    is_unknown = np.isnan(products)
    sums = _running_sums(np.where(is_unknown, 0.0, products))
    found = amounts * (sums[course.ends] - sums[course.begins])
    if is_unknown.any():
        gaps = _running_sums(is_unknown.astype(np.float64))
        found[(gaps[course.ends] > gaps[course.begins]) & (amounts != 0.0)] = np.nan
    return found


def _running_sums(values: Floats) -> Floats:
    return np.concatenate((np.zeros(1), np.cumsum(values)))
