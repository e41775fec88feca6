"""The energy, money and carbon of each node in each hour, by the bill's formulas.

The rows show when the bill arose, and add up to it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.billing.accounting import PARTS, BilledParts
from greensched_policies.billing.timelines import (
    Caps,
    Sleeps,
    ZoneSeries,
    held,
    joules_of,
    power_caps_at,
    steps_at,
)
from greensched_policies.billing.transfers import Transfers, transfer_grams
from greensched_policies.costs.capping import cpu_power, gpu_watts
from greensched_policies.costs.cost import (
    CURVE_POINTS,
    JOULES_PER_MWH,
    CostModel,
    Floats,
    Integers,
    load_watts,
)
from greensched_simulator.runs.job_transfers import transfers_of
from greensched_simulator.runs.replica_use import RunPieces, run_pieces
from greensched_simulator.runs.run_inputs import cost_model
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.runs.simulation import billed_series, zone_series
from greensched_simulator.world.world import World, idle_watts

HOUR_S = 3600.0
_MOST_PIECES = 1_000_000  # in memory at a time, for any size of cluster


@dataclass(frozen=True)
class NodeHours(BilledParts[Floats]):
    """Rows of some nodes, ordered by node, then hour, [R]."""

    node: Integers
    hour: Integers  # since the scenario's start
    length_s: Floats  # of the hour within the window
    cpu_core_s: Floats  # requested by running jobs
    gpu_s: Floats  # GPUs, likewise


class _Pieces(NamedTuple):
    """Intervals in which nothing changes on a node; a node's last piece has no length."""

    node: Integers
    start_s: Floats
    length_s: Floats
    cpu_cores: Floats  # requested
    load_cores: Floats  # that jobs request which use as much CPU
    gpus: Floats
    gpu_w: Floats  # of all GPUs in use, above idle, without PUE
    is_empty: npt.NDArray[np.bool_]
    cpu_frequency: Floats  # share of the highest; 1 without a cap
    is_off: npt.NDArray[np.bool_]  # asleep, waking or failed
    sleep_w: Floats  # without PUE
    wake_w: Floats


class _Brought(NamedTuple):
    """Transfers, cut at full hours."""

    node: Integers
    hour: Integers
    energy_j: Floats
    cost: Floats
    carbon_g: Floats


def node_hours(world: World, schedule: Schedule, until_s: float) -> Iterator[NodeHours]:
    """Yield the rows of all nodes from 0 to `until_s`, some nodes at a time."""
    zones, brought = billed_series(world, schedule, until_s), _brought(world, schedule)
    widest = max(series.times_s.size for series in zones) + int(until_s // HOUR_S) + 2
    at_once = max(_MOST_PIECES // widest, 1)
    ran = run_pieces(world, schedule)
    ran = RunPieces._make(each[ran.start_s < until_s] for each in ran)
    ran = RunPieces._make(each[np.argsort(ran.node, kind="stable")] for each in ran)
    for first in range(0, world.nodes.zone.size, at_once):
        nodes = np.arange(first, min(first + at_once, world.nodes.zone.size))
        there = slice(*np.searchsorted(ran.node, (nodes[0], nodes[-1] + 1)))
        on_nodes = RunPieces._make(each[there] for each in ran)
        pieces = _pieces(world, schedule, zones, nodes, on_nodes, until_s)
        yield _rows(world, zones, pieces, nodes, brought)


def _quiet_moments(
    world: World, caps: Caps, series: Sequence[ZoneSeries], nodes: Integers, until_s: float
) -> tuple[Integers, Floats]:
    """Return nodes and times of all moments without a start or end: hours, grid steps and caps."""
    hours_s = np.append(np.arange(0.0, until_s, HOUR_S), until_s)
    places, times_s = [], []
    for node in nodes:
        steps_s = np.append(series[world.nodes.zone[node]].times_s, caps.from_s[caps.node == node])
        within_s = steps_s[(steps_s > 0.0) & (steps_s < until_s)]
        places.append(np.full(hours_s.size + within_s.size, node))
        times_s += [hours_s, within_s]
    return np.concatenate(places), np.concatenate(times_s)


def _pieces(
    world: World,
    schedule: Schedule,
    series: Sequence[ZoneSeries],
    nodes: Integers,
    ran: RunPieces,
    until_s: float,
) -> _Pieces:
    places, quiet = _quiet_moments(world, schedule.caps, series, nodes, until_s)
    jobs, node = world.jobs, ran.node
    end_s = np.fmin(ran.end_s, until_s)
    sleeps = _sleeps_within(schedule.off, nodes, until_s)
    at = np.concatenate([node, node, *(sleeps.node,) * 3, places])
    time_s = np.concatenate([ran.start_s, end_s, *sleeps[1:4], quiet])
    order = np.lexsort((time_s, at))

    def running(amount: Floats, asleep: Floats, wakes: Floats) -> Floats:
        state = (asleep, wakes - asleep, -wakes)
        change = np.concatenate([amount, -amount, *state, np.zeros(quiet.size)])
        return np.cumsum(change[order])

    none, no_watts = np.zeros(node.size), np.zeros(sleeps.node.size)
    is_off = running(none, no_watts + 1.0, no_watts + 1.0) > 0.5
    # Counts are exact, unlike sums of cores.
    is_empty = running(np.ones(node.size), no_watts, no_watts) < 0.5
    at, time_s = at[order], time_s[order]
    length_s = np.append(np.diff(time_s), 0.0)
    length_s[np.append(np.diff(at) != 0, True)] = 0.0
    asked = jobs.cpu_cores[ran.job]
    cores = np.where(is_empty, 0.0, running(asked, no_watts, no_watts))
    used = running(asked * ran.use, no_watts, no_watts) if world.services else cores
    cpu_frequency, gpu_cap = _power_caps(schedule.caps, at, time_s)
    gpu_w = _gpu_watts(world, ran, gpu_cap, lambda each: running(each, no_watts, no_watts))
    return _Pieces(
        at, time_s, length_s, cores, np.where(is_empty, 0.0, used),
        np.where(is_empty, 0.0, running(jobs.gpus[ran.job], no_watts, no_watts)),
        gpu_w, is_empty, cpu_frequency, is_off,
        np.where(is_off, running(none, sleeps.sleep_w, no_watts), 0.0),
        np.where(is_off, running(none, no_watts, sleeps.wake_w), 0.0),
    )  # fmt: skip


def _power_caps(caps: Caps, at: Integers, time_s: Floats) -> tuple[Floats, Floats]:
    """Return the nodes' CPU frequencies and GPU caps; nodes, and the times of each, ascend."""
    found = np.ones((2, at.size))
    for node in np.unique(caps.node):
        of_node = caps.node == node
        here = slice(*np.searchsorted(at, (node, node + 1)))
        found[:, here] = power_caps_at(Caps._make(each[of_node] for each in caps), time_s[here])
    return found[0], found[1]


def _gpu_watts(
    world: World, ran: RunPieces, gpu_cap: Floats, running: Callable[[Floats], Floats]
) -> Floats:
    """Return the watts above idle of all GPUs in use in each piece, at its GPU cap, without PUE.

    `running` sums amounts of runs over those that run during each piece.
    """
    jobs, nodes, found = world.jobs, world.nodes, np.zeros(gpu_cap.size)
    gpus = jobs.gpus[ran.job]
    if not gpus.any():
        return found
    idle_w, peak_w = nodes.gpu_idle_w[ran.node], nodes.gpu_peak_w[ran.node]
    for power_cap in np.unique(gpu_cap):
        of_gpu = gpu_watts(power_cap, idle_w, peak_w, jobs.gpu_ratio[ran.job])
        watts = gpus * of_gpu
        is_drawn = (gpu_cap == power_cap) & (running((watts > 0.0).astype(np.float64)) > 0.5)
        found = np.where(is_drawn, running(watts), found)
    return found


def _sleeps_within(sleeps: Sleeps, nodes: Integers, until_s: float) -> Sleeps:
    """Return the nodes' sleeps that begin before the window's end, cut off there."""
    is_kept = (sleeps.node >= nodes[0]) & (sleeps.node <= nodes[-1]) & (sleeps.asleep_s < until_s)
    cut = Sleeps._make(each[is_kept] for each in sleeps)
    return cut._replace(
        asleep_s=np.minimum(cut.asleep_s, until_s),
        woken_s=np.minimum(cut.woken_s, until_s),
        awake_s=np.minimum(cut.awake_s, until_s),
    )


def _rows(
    world: World,
    zones: Sequence[ZoneSeries],
    pieces: _Pieces,
    nodes: Integers,
    brought: _Brought,
) -> NodeHours:
    hours = int(pieces.start_s.max() // HOUR_S) + 1
    hour = (pieces.start_s // HOUR_S).astype(np.int64)
    row = (pieces.node - nodes[0]) * hours + hour
    count = nodes.size * hours
    here = (brought.node >= nodes[0]) & (brought.node <= nodes[-1])
    there = (brought.node[here] - nodes[0]) * hours + brought.hour[here]

    def summed(each: Floats) -> Floats:
        return np.asarray(np.bincount(row, each, count), np.float64)

    def moved(each: Floats) -> Floats:
        return np.asarray(np.bincount(there, each[here], count), np.float64)

    length_s = summed(pieces.length_s)
    came = (brought.energy_j, brought.cost, brought.carbon_g)
    parts = [
        column
        for drawn, each in zip(_drawn(world, zones, pieces), came, strict=True)
        for column in (*map(summed, drawn), moved(each))
    ]
    columns: dict[str, npt.NDArray[Any]] = {
        "node": np.repeat(nodes, hours),
        "hour": np.tile(np.arange(hours), nodes.size),
        "length_s": length_s,
        "cpu_core_s": summed(pieces.cpu_cores * pieces.length_s),
        "gpu_s": summed(pieces.gpus * pieces.length_s),
        **dict(zip(PARTS, parts, strict=True)),
    }
    is_billed = length_s > 0.0  # a window that ends on a full hour has an empty row after it
    return NodeHours(**{name: each[is_billed] for name, each in columns.items()})


def _drawn(
    world: World, zones: Sequence[ZoneSeries], pieces: _Pieces
) -> Iterator[Iterator[Floats]]:
    """Yield joules, then money, then grams of each piece: active, idle, asleep and waking."""
    carbon, price, pue = _grid(world, zones, pieces)
    pue *= world.nodes.pue[pieces.node]
    joules = [
        joules_of(watts, pue, pieces.length_s) for watts in _watts(world, pieces, cost_model(world))
    ]
    yield iter(joules)
    yield (_times(each, price) / JOULES_PER_MWH for each in joules)
    yield (_times(each, carbon) / JOULES_PER_KWH for each in joules)


def _brought(world: World, schedule: Schedule) -> _Brought:
    """Return all transfers, cut at full hours."""
    whole = transfers_of(world, schedule)
    first, last = (each // HOUR_S for each in (whole.start_s, whole.end_s))
    count = (last - first).astype(np.int64) + 1
    at = np.repeat(np.arange(count.size), count)
    hour = np.repeat(first, count) + np.arange(at.size) - np.repeat(np.cumsum(count) - count, count)
    parts = Transfers._make(each[at] for each in whole)
    start_s = np.maximum(parts.start_s, hour * HOUR_S)
    end_s = np.minimum(parts.end_s, (hour + 1) * HOUR_S)
    length_s = parts.end_s - parts.start_s
    share = np.divide(end_s - start_s, length_s, np.ones(at.size), where=length_s > 0.0)
    parts = parts._replace(
        start_s=start_s, end_s=end_s, energy_j=parts.energy_j * share, cost=parts.cost * share
    )
    # A transfer that ends on a full hour has an empty part after it, where the grid may lack data.
    some = Transfers._make(each[share > 0.0] for each in parts)
    grams = transfer_grams(some, world.nodes.zone[some.node], zone_series(world))
    return _Brought(some.node, hour[share > 0.0].astype(np.int64), some.energy_j, some.cost, grams)


def _watts(world: World, pieces: _Pieces, model: CostModel) -> tuple[Floats, ...]:
    """Return the active, idle, sleeping and waking watts of each piece, without PUE."""
    nodes, at = world.nodes, pieces.node
    curve = nodes.curve_class[at].astype(np.int64) * CURVE_POINTS
    cpu_w = load_watts(
        model.curve_watts, curve, pieces.load_cores, nodes.cpu_capacity[at], model.utilisation_ratio
    )
    idle_w = idle_watts(world)[at]
    if model.empty_nodes_sleep:
        idle_w = np.where(pieces.is_empty, 0.0, idle_w)
    idle_w = np.where(pieces.is_off, 0.0, idle_w)
    active_w = cpu_w * cpu_power(pieces.cpu_frequency) + pieces.gpu_w
    return active_w, idle_w, pieces.sleep_w, pieces.wake_w


def _grid(
    world: World, zones: Sequence[ZoneSeries], pieces: _Pieces
) -> tuple[Floats, Floats, Floats]:
    """Return carbon intensity, price and PUE relative to the nodes' PUE; NaN without data."""
    found = np.full((3, pieces.node.size), np.nan)
    for zone, series in enumerate(zones):
        in_zone = np.flatnonzero(world.nodes.zone[pieces.node] == zone)
        steps = steps_at(pieces.start_s[in_zone], series.times_s)
        found[0, in_zone] = held(steps, series.carbon_g_per_kwh)
        found[1, in_zone] = held(steps, series.price_per_mwh)
        found[2, in_zone] = 1.0
        if series.pue_relative is not None:
            found[2, in_zone] = held(steps, series.pue_relative)
    return found[0], found[1], found[2]


def _times(energy_j: Floats, values: Floats) -> Floats:
    """Return energy times value; 0 without energy, even if the value is NaN."""
    return np.where(energy_j == 0.0, 0.0, energy_j * values)
