"""Timelines of nodes: the work that ran, the power drawn, and the grid behind it.

The bill is the integral of a timeline. Power changes only when a workload starts or ends, a node
sleeps or wakes, or its cap is set; the grid changes only at the steps of its series. Between such
moments all is constant. The formulas are those of `cost` and `capping`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.capping import cpu_power, gpu_watts
from greensched_policies.costs.cost import (
    CURVE_POINTS,
    CostModel,
    Floats,
    Integers,
    load_watts,
)

Places = npt.NDArray[np.intp]


class BilledNodes(NamedTuple):
    """The machines of the schedule, [N]."""

    cpu_capacity: Floats  # cores
    curve_class: Integers  # row of the model's curve table
    gpu_capacity: Floats  # GPUs
    gpu_idle_w: Floats  # watts per GPU
    gpu_peak_w: Floats  # watts per GPU
    pue: Floats  # times the zone's `pue_relative`, if it has one
    zone: Integers  # index into the series; -1: unknown, money and carbon are NaN


class Placements(NamedTuple):
    """What ran where and when, [P]; the order carries no meaning.

    Each uses the model's share of its cores. Work that uses another share of those that it requests
    counts with as many cores as use the same. Its GPUs draw its own `gpu_ratio`, without one the
    model's.
    """

    node: Integers  # index into the nodes
    start_s: Floats
    end_s: Floats  # infinity: still running
    cpu_cores: Floats  # requested
    gpus: Floats
    # share of a GPU's idle-to-peak range that it draws; None: the model's for all
    gpu_ratio: Floats | None = None


class Sleeps(NamedTuple):
    """When nodes slept, [S]; asleep or waking, a node neither runs work nor idles.

    The order carries no meaning. Watts are the machine's, without PUE.
    """

    node: Integers  # index into the nodes
    asleep_s: Floats
    woken_s: Floats  # when it begins to wake; infinity: still asleep
    awake_s: Floats  # when it can run work
    sleep_w: Floats
    wake_w: Floats


class Caps(NamedTuple):
    """When nodes were capped, [K]; power caps hold until the node's next ones; 1: no cap.

    Before its first cap a node has none. A node's caps are in order of time; nodes may be mixed.
    """

    node: Integers  # index into the nodes
    from_s: Floats
    cpu_frequency: Floats  # share of the highest at which its CPUs run
    gpu_cap: Floats  # share of each GPU's highest watt limit


_MOST_SHORT = np.iinfo(np.uint16).max
NO_CAPS = Caps(np.zeros(0, np.int64), *(np.zeros(0),) * 3)
NO_SLEEPS = Sleeps(np.zeros(0, np.int64), *(np.zeros(0),) * 5)


class ZoneSeries(NamedTuple):
    """A grid zone's steps, [T]: each value holds until the next time, the last one for ever."""

    times_s: Floats  # ascending; before the first there is no data
    carbon_g_per_kwh: Floats  # NaN: no data
    price_per_mwh: Floats  # NaN: no data; may be negative
    # factor on each node's PUE, by the weather; NaN: no data. None: always 1
    pue_relative: Floats | None = None


class NodeTimeline(NamedTuple):
    """One node's values between moments, [K], and the moments that each placement spans, [M].

    Watts are the machine's, without PUE. L is the number of GPU caps that it ever had; 0 without
    work on GPUs.
    """

    mine: Places  # [M] indices of its placements, in an order that depends only on their values
    begins: Places  # [M] places of their starts among the moments
    ends: Places  # [M]
    start_s: Floats
    length_s: Floats
    cores: Floats  # requested by what runs
    cpu_w: Floats  # above idle
    gpu_w: Floats  # of all GPUs in use, above idle
    gpu_cap: Places  # place of the GPU cap among the L
    gpu_w_of: Floats  # [L,M] of each placement's GPUs at each GPU cap, above idle
    idle_w: Floats
    sleep_w: Floats
    wake_w: Floats
    pue: Floats  # NaN: no data, as below
    carbon_g_per_kwh: Floats
    price_per_mwh: Floats


class _NodeHistory(NamedTuple):
    """One node's placements, [M], with their times within the window, its sleeps and its caps."""

    row: int
    mine: Places  # [M] indices of its placements
    start_s: Floats
    end_s: Floats
    slept: Sleeps
    capped: Caps


def timelines_of(
    nodes: BilledNodes,
    placements: Placements,
    zones: Sequence[ZoneSeries],
    window_s: tuple[float, float],
    model: CostModel,
    sleeps: Sleeps,
    caps: Caps,
) -> Iterator[NodeTimeline]:
    """Yield the timeline of each node within the window, node after node."""
    if not window_s[0] <= window_s[1]:
        raise ValueError(f"the window ends before it starts: {window_s}")
    if ((placements.node < 0) | (placements.node >= nodes.cpu_capacity.size)).any():
        raise ValueError("a placement is on a node that does not exist")
    start_s = np.maximum(placements.start_s, window_s[0])
    end_s = np.minimum(placements.end_s, window_s[1])
    kept = np.flatnonzero(end_s > start_s)
    # A total order by the placements' values, so that sums do not depend on the order given.
    amounts = (each for each in placements[3:] if each is not None)
    kept = _in_order(kept, placements.node, start_s, end_s, *amounts)
    bounds = np.searchsorted(placements.node[kept], np.arange(nodes.cpu_capacity.size + 1))
    asleep = _within(sleeps, window_s)
    asleep_bounds = np.searchsorted(asleep.node, np.arange(nodes.cpu_capacity.size + 1))
    order = np.argsort(caps.node, kind="stable")
    capped = Caps._make(each[order] for each in caps)
    capped_bounds = np.searchsorted(capped.node, np.arange(nodes.cpu_capacity.size + 1))
    steps_s = [_steps_within(series, window_s) for series in zones]
    for row in range(nodes.cpu_capacity.size):
        mine, zone = kept[bounds[row] : bounds[row + 1]], int(nodes.zone[row])
        series = zones[zone] if zone >= 0 else None
        steps = steps_s[zone] if zone >= 0 else np.zeros(0)
        slept = Sleeps._make(each[asleep_bounds[row] : asleep_bounds[row + 1]] for each in asleep)
        power_cap = Caps._make(each[capped_bounds[row] : capped_bounds[row + 1]] for each in capped)
        history = _NodeHistory(row, mine, start_s[mine], end_s[mine], slept, power_cap)
        changes_s = np.clip(power_cap.from_s, *window_s)
        times_s = (start_s[mine], end_s[mine], *slept[1:4], changes_s, steps, np.array(window_s))
        moments = np.unique(np.concatenate(times_s))
        yield _timeline(nodes, placements, history, moments, series, model)


def _in_order(kept: Places, *keys: Floats | Integers) -> Places:
    """Return places sorted by keys, the first whole; equal first and second keys are rare."""
    order = kept[np.argsort(keys[1][kept], kind="stable")]
    # numpy sorts integers of 16 bits in linear time.
    is_short = keys[0].size > 0 and keys[0].max() <= _MOST_SHORT
    first = keys[0][order].astype(np.uint16 if is_short else np.int64)
    order = order[np.argsort(first, kind="stable")]
    agree = np.flatnonzero((np.diff(keys[0][order]) == 0) & (np.diff(keys[1][order]) == 0))
    tied = np.union1d(agree, agree + 1)
    still = order[tied]
    order[tied] = still[np.lexsort([key[still] for key in reversed(keys)])]
    return order


def _within(sleeps: Sleeps, window_s: tuple[float, float]) -> Sleeps:
    """Return the sleeps within the window, sorted by node and time."""
    cut = Sleeps._make(
        [sleeps.node, *(np.clip(each, *window_s) for each in sleeps[1:4]), *sleeps[4:]]
    )
    order = np.lexsort((cut.asleep_s, cut.node))
    kept = order[(cut.awake_s > cut.asleep_s)[order]]
    return Sleeps._make(each[kept] for each in cut)


def _steps_within(series: ZoneSeries, window_s: tuple[float, float]) -> Floats:
    return series.times_s[(series.times_s > window_s[0]) & (series.times_s < window_s[1])]


def _timeline(
    nodes: BilledNodes,
    placements: Placements,
    history: _NodeHistory,
    moments: Floats,
    series: ZoneSeries | None,
    model: CostModel,
) -> NodeTimeline:
    """Return one node's timeline between `moments`, which include all times of its history."""
    row, mine = history.row, history.mine
    begins = np.searchsorted(moments, history.start_s)
    ends = np.searchsorted(moments, history.end_s)
    count = running(begins, ends, np.ones(mine.size), moments.size)
    is_empty = count < 0.5  # sums of whole numbers are exact, unlike sums of cores
    cores = np.where(is_empty, 0.0, running(begins, ends, placements.cpu_cores[mine], moments.size))
    first = int(nodes.curve_class[row]) * CURVE_POINTS
    starts, capacity = np.full(cores.shape, first), nodes.cpu_capacity[row]
    cpu_w = load_watts(model.curve_watts, starts, cores, capacity, model.utilisation_ratio)
    gpu_cap = np.ones(0)
    if history.capped.node.size:
        cpu_frequency, gpu_cap = power_caps_at(history.capped, moments[:-1])
        cpu_w *= cpu_power(cpu_frequency)
    draw = _gpu_draw(nodes, placements, history, (begins, ends, moments.size), gpu_cap, model)
    gpus_idle_w = nodes.gpu_capacity[row] * nodes.gpu_idle_w[row]
    idle_w = np.full(cores.shape, model.curve_watts[first] + gpus_idle_w)
    if model.empty_nodes_sleep:
        idle_w[is_empty] = 0.0
    sleep_w, wake_w = _without_idling(history.slept, moments, idle_w, is_empty)
    return NodeTimeline(
        mine, begins, ends, moments[:-1], np.diff(moments), cores, cpu_w, *draw, idle_w,
        sleep_w, wake_w, *_grid(series, moments[:-1], nodes.pue[row]),
    )  # fmt: skip


class _GpuDraw(NamedTuple):
    """What GPUs of a node draw above idle: fields of its timeline."""

    gpu_w: Floats
    gpu_cap: Places
    gpu_w_of: Floats


def _gpu_draw(
    nodes: BilledNodes,
    placements: Placements,
    history: _NodeHistory,
    spans: tuple[Places, Places, int],
    gpu_cap: Floats,
    model: CostModel,
) -> _GpuDraw:
    """Return what the GPUs of a node draw at its GPU cap over time, [0] if it has none.

    `spans` are the begins and ends of its placements, and the number of moments.
    """
    row, mine = history.row, history.mine
    gpus, gpu_w = placements.gpus[mine], np.zeros(spans[2] - 1)
    caps, place = np.ones(1), np.zeros(gpu_w.size, np.int64)
    if not gpus.any():
        return _GpuDraw(gpu_w, place, np.zeros((0, mine.size)))
    ratio = model.gpu_ratio if placements.gpu_ratio is None else placements.gpu_ratio[mine]
    if gpu_cap.size:
        caps, place = np.unique(gpu_cap, return_inverse=True)
    of_gpu = gpu_watts(caps[:, None], nodes.gpu_idle_w[row], nodes.gpu_peak_w[row], ratio)
    gpu_w_of = gpus * of_gpu
    for level, watts in enumerate(gpu_w_of):
        gpu_w = np.where(place == level, _running_watts(*spans, watts), gpu_w)
    return _GpuDraw(gpu_w, place, gpu_w_of)


def _running_watts(begins: Places, ends: Places, moments: int, watts: Floats) -> Floats:
    """Return the watts of what runs after each moment except the last; 0 while nothing draws any.

    Sums of watts may not cancel, those of whole numbers do.
    """
    drawing = running(begins, ends, (watts > 0.0).astype(np.float64), moments)
    return np.where(drawing > 0.5, running(begins, ends, watts, moments), 0.0)


def joules_of(watts: Floats, pue: Floats, length_s: Floats) -> Floats:
    """Return joules at the meter; time without watts needs no PUE."""
    joules: Floats = watts * pue * length_s
    joules[watts == 0.0] = 0.0
    return joules


def power_caps_at(capped: Caps, times_s: Floats) -> tuple[Floats, Floats]:
    """Return a node's CPU frequency and GPU cap at some times, by its caps, at least one."""
    steps = steps_at(times_s, capped.from_s)
    cpu_frequency = held(steps, capped.cpu_frequency, before=1.0)
    return cpu_frequency, held(steps, capped.gpu_cap, before=1.0)


def _without_idling(
    slept: Sleeps, moments: Floats, idle_w: Floats, is_empty: npt.NDArray[np.bool_]
) -> tuple[Floats, Floats]:
    """Return the watts asleep and waking, and set `idle_w` to 0 for those times."""
    if slept.node.size == 0:
        return np.zeros(idle_w.size), np.zeros(idle_w.size)
    asleep, woken, awake = (np.searchsorted(moments, each) for each in slept[1:4])
    is_off = running(asleep, awake, np.ones(asleep.size), moments.size) > 0.5
    if (is_off & ~is_empty).any():
        raise ValueError("a placement runs on a node that sleeps or wakes")
    idle_w[is_off] = 0.0
    return (
        running(asleep, woken, slept.sleep_w, moments.size),
        running(woken, awake, slept.wake_w, moments.size),
    )


def running(begins: Places, ends: Places, amounts: Floats, moments: int) -> Floats:
    """Return the amount that runs after each moment except the last."""
    change = np.zeros(moments)
    np.add.at(change, begins, amounts)
    np.subtract.at(change, ends, amounts)
    return np.cumsum(change)[:-1]


def _grid(series: ZoneSeries | None, times_s: Floats, pue: float) -> tuple[Floats, Floats, Floats]:
    """Return PUE, carbon intensity and price at some times; NaN where there is no data."""
    unknown, node_pue = np.full(times_s.shape, np.nan), np.full(times_s.shape, pue)
    if series is None:
        return node_pue, unknown, unknown
    steps = steps_at(times_s, series.times_s)
    if series.pue_relative is not None:
        node_pue *= held(steps, series.pue_relative)
    return node_pue, held(steps, series.carbon_g_per_kwh), held(steps, series.price_per_mwh)


def steps_at(times_s: Floats, from_s: Floats) -> Places:
    """Return the step that holds at each time; -1 before the first step.

    `from_s`, when steps begin, is ascending and has at least one time.
    """
    return np.searchsorted(from_s, times_s, side="right") - 1


def held(steps: Places, values: Floats, before: float = np.nan) -> Floats:
    """Return the values of some steps; `before` for step -1."""
    return np.where(steps >= 0, values[np.maximum(steps, 0)], before)
