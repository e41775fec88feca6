"""The bill of a recorded schedule: energy, money and carbon per node, apart by what it was doing.

Beside it the active part's share of each placement.

One pass over what happened, apart from any decision. Power only changes when a workload
starts or ends or a node sleeps or wakes, and the grid only at the steps of its series, so the
integral between those moments is exact: there is no time step. The formulas are those of `cost`.
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


class Sleeps(NamedTuple):
    """When nodes slept, [S]; a node neither runs nor idles then, nor while it wakes.

    The order carries no meaning. Watts are the machine's, without PUE.
    """

    node: Integers  # index into the nodes
    asleep_s: Floats
    woken_s: Floats  # it begins to wake; infinity: still asleep
    awake_s: Floats  # it can run
    sleep_w: Floats
    wake_w: Floats


NO_SLEEPS = Sleeps(np.zeros(0, np.int64), *(np.zeros(0),) * 5)


class ZoneSeries(NamedTuple):
    """A grid zone's steps, [T]: each value holds until the next time, the last one for ever."""

    times_s: Floats  # ascending; before the first there is no data
    carbon_g_per_kwh: Floats  # NaN: no data
    price_per_mwh: Floats  # NaN: no data; may be negative


class Bill(NamedTuple):
    """What each node used within the window, [N]; active is what lies above idle.

    Money is in the currency of the prices; NaN where a price was missing, and grams likewise.
    """

    energy_active_j: Floats
    energy_idle_j: Floats
    energy_sleep_j: Floats
    energy_wake_j: Floats
    cost_active: Floats
    cost_idle: Floats
    cost_sleep: Floats
    cost_wake: Floats
    carbon_active_g: Floats
    carbon_idle_g: Floats
    carbon_sleep_g: Floats
    carbon_wake_g: Floats
    is_used: npt.NDArray[np.bool_]  # ran something within the window


class BillTotal(NamedTuple):
    """A bill summed over its nodes."""

    energy_active_j: float
    energy_idle_j: float
    energy_sleep_j: float
    energy_wake_j: float
    cost_active: float
    cost_idle: float
    cost_sleep: float
    cost_wake: float
    carbon_active_g: float
    carbon_idle_g: float
    carbon_sleep_g: float
    carbon_wake_g: float
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
    sleep_w: Floats
    wake_w: Floats
    pue: float
    carbon_g_per_kwh: Floats  # NaN: no data
    price_per_mwh: Floats


def bill_schedule(
    nodes: BilledNodes,
    placements: Placements,
    zones: Sequence[ZoneSeries],
    window_s: tuple[float, float],
    model: CostModel,
    sleeps: Sleeps = NO_SLEEPS,
) -> Bill:
    """Return the bill of the schedule from `window_s[0]` to `window_s[1]`, in seconds.

    Idle watts are the node's at no load, with its boards: billed for the whole window but for
    `sleeps`, or, with `empty_nodes_sleep`, only while something runs. Where carbon or price is
    missing for any part of a node's use, that node's carbon or cost is NaN, never too small.
    Raises ValueError when the window ends before it starts, a placement names no node, or one runs
    on a node that sleeps or wakes.
    """
    columns = np.zeros((12, nodes.cpu_capacity.size))
    is_used = np.zeros(nodes.cpu_capacity.size, dtype=np.bool_)
    for row, course in enumerate(_courses(nodes, placements, zones, window_s, model, sleeps)):
        columns[:, row] = _integrate(course)
        is_used[row] = course.mine.size > 0
    return Bill._make([*columns, is_used])


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
    for course in _courses(nodes, placements, zones, window_s, model, NO_SLEEPS):
        if course.mine.size:
            columns[:, course.mine] = _shares(course, placements)
    return PlacementBill(*columns)


def total_bill(bill: Bill) -> BillTotal:
    """Sum a bill over its nodes; NaN where any node's part is not known."""
    return BillTotal._make(
        [*(float(column.sum()) for column in bill[:-1]), int(bill.is_used.sum())]
    )


def _courses(
    nodes: BilledNodes,
    placements: Placements,
    zones: Sequence[ZoneSeries],
    window_s: tuple[float, float],
    model: CostModel,
    sleeps: Sleeps,
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
    asleep = _within(sleeps, window_s)
    asleep_bounds = np.searchsorted(asleep.node, np.arange(nodes.cpu_capacity.size + 1))
    steps_s = [_steps_within(series, window_s) for series in zones]
    for row in range(nodes.cpu_capacity.size):
        mine, zone = kept[bounds[row] : bounds[row + 1]], int(nodes.zone[row])
        series = zones[zone] if zone >= 0 else None
        steps = steps_s[zone] if zone >= 0 else np.zeros(0)
        span_s = (start_s[mine], end_s[mine])
        slept = Sleeps._make(each[asleep_bounds[row] : asleep_bounds[row + 1]] for each in asleep)
        moments = np.unique(np.concatenate((*span_s, *slept[1:4], steps, np.array(window_s))))
        yield _course(nodes, row, moments, span_s, placements, mine, series, model, slept)


def _within(sleeps: Sleeps, window_s: tuple[float, float]) -> Sleeps:
    """Return what lies within the window, node after node and in the order of time."""
    cut = Sleeps._make(
        [sleeps.node, *(np.clip(each, *window_s) for each in sleeps[1:4]), *sleeps[4:]]
    )
    order = np.lexsort((cut.asleep_s, cut.node))
    kept = order[(cut.awake_s > cut.asleep_s)[order]]
    return Sleeps._make(each[kept] for each in cut)


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
    slept: Sleeps,
) -> _Course:
    """Return one node's watts between `moments`, which hold all times of `mine` and `slept`."""
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
    sleep_w, wake_w = _without_idling(slept, moments, idle_w, is_empty)
    return _Course(
        mine, begins, ends, moments[:-1], np.diff(moments), cores, boards, cpu_w, board_w, idle_w,
        sleep_w, wake_w, nodes.pue[row], *_grid(series, moments[:-1]),
    )  # fmt: skip


def _without_idling(
    slept: Sleeps, moments: Floats, idle_w: Floats, is_empty: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return the watts asleep and while waking, and take the idle ones of those times away."""
    if slept.node.size == 0:
        return np.zeros(idle_w.size), np.zeros(idle_w.size)
    asleep, woken, awake = (np.searchsorted(moments, each) for each in slept[1:4])
    is_off = _running(asleep, awake, np.ones(asleep.size), moments.size) > 0.5
    if (is_off & ~is_empty).any():
        raise ValueError("a placement runs on a node that sleeps or wakes")
    idle_w[is_off] = 0.0
    return (
        _running(asleep, woken, slept.sleep_w, moments.size),
        _running(woken, awake, slept.wake_w, moments.size),
    )


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


def _integrate(course: _Course) -> list[float]:
    """Return joules, money and grams, each active, idle, asleep and waking: a bill's columns."""
    active_w = course.cpu_w + course.boards * course.board_w
    pue, length_s = course.pue, course.length_s
    joules = [
        watts * pue * length_s for watts in (active_w, course.idle_w, course.sleep_w, course.wake_w)
    ]
    return [
        *(float(each.sum()) for each in joules),
        *(_weigh(each, course.price_per_mwh) / JOULES_PER_MWH for each in joules),
        *(_weigh(each, course.carbon_g_per_kwh) / JOULES_PER_KWH for each in joules),
    ]


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
