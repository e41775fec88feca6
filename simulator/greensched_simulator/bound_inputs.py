"""What a bound is made of: watts per core of groups of nodes, and the course of a signal."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.capping import LEVELS, board_speed, board_watts, cpu_power, cpu_speed
from greensched_policies.cost import CURVE_POINTS, JOULES_PER_KWH, JOULES_PER_MWH, Floats
from greensched_policies.courses import held, steps_at
from greensched_policies.sleeping import SleepColumns
from greensched_simulator.jobs import Jobs
from greensched_simulator.simulation import zone_series
from greensched_simulator.sleep_tables import sleep_columns
from greensched_simulator.world import World, highest_watts, idle_watts

Signal = Literal["energy", "carbon", "cost"]
_UNIT_J = {"energy": 1.0, "carbon": JOULES_PER_KWH, "cost": JOULES_PER_MWH}
_EPSILON = 1e-9  # share of a capacity that sums of floats may be off by


class Group(NamedTuple):
    """Nodes alike in all that matters here, taken as one large node."""

    zone: int
    capacity: tuple[float, float, float]  # cores, bytes and boards of all its nodes
    largest: tuple[float, float, float]  # of one node
    speed: float
    # Per core requested, at the meter: least and most. Where nodes are capped, the joules of what
    # takes a second at full speed.
    watts_per_core: tuple[tuple[float, float], tuple[float, float]]  # of jobs without boards, with
    steepest_watts_per_core: float  # the most that one core more can add, however full the node
    watts_per_board: tuple[float, float]  # least and most
    # Per core and per board of who stays as long, whatever the pace: least and most.
    staying_watts_per_core: tuple[float, float]
    staying_watts_per_board: tuple[float, float]
    slowest: float  # pace under the deepest cap, relative to none
    saved_watts: float  # of one empty node at the meter while it sleeps; 0 if it never can
    wake_joules: float  # at the meter, to wake it, above what sleeping on takes

    def watts(self, jobs: Jobs, job: int) -> tuple[float, float]:
        """Return the least and the most watts that a job adds here."""
        workers = jobs.workers[job]
        cores, boards = workers * jobs.cpu_cores[job], workers * jobs.gpus[job]
        low, high = (
            cores * core_w + boards * board_w
            for core_w, board_w in zip(
                self.watts_per_core[int(boards > 0)], self.watts_per_board, strict=True
            )
        )
        return low, high

    def staying_watts(self, jobs: Jobs, job: int) -> tuple[float, float]:
        """Return the least and the most watts that a replica adds here, at any pace."""
        low, high = (
            jobs.cpu_cores[job] * core_w + jobs.gpus[job] * board_w
            for core_w, board_w in zip(
                self.staying_watts_per_core, self.staying_watts_per_board, strict=True
            )
        )
        return low, high


class Course(NamedTuple):
    """What running costs over time for one job on one group: linear between the times."""

    times_s: Floats
    costs: Floats  # from the first time on

    def until(self, times_s: Floats) -> Floats:
        """Return the cost of running from the first time until each of some others."""
        found: Floats = np.interp(times_s, self.times_s, self.costs)
        return found

    def of(self, begin_s: float, end_s: float) -> float:
        """Return the cost of running from one time to another."""
        return float(np.diff(self.until(np.array([begin_s, end_s])))[0])

    def least_run(self, first_s: Floats, last_s: Floats, runtime_s: float) -> Floats:
        """Return the least cost of a whole run that starts within each interval, [V].

        The intervals follow each other. The cost is linear between the starts at which a run's
        begin or end meets a step, so that the least one is among these.
        """
        begin_s, end_s = first_s[0], last_s[-1]
        meeting = np.concatenate([self.times_s, self.times_s - runtime_s])
        meeting = meeting[(meeting > begin_s) & (meeting < end_s)]
        starts_s = np.unique(np.concatenate([first_s, last_s, meeting]))
        cost = self.until(starts_s + runtime_s) - self.until(starts_s)
        within = np.minimum.reduceat(cost, np.searchsorted(starts_s, first_s))
        return np.minimum(within, cost[np.searchsorted(starts_s, last_s)])

    def least_rate(self, first_s: Floats, last_s: Floats) -> Floats:
        """Return the least cost of a second within each interval, [V]; none may be empty."""
        within = self.times_s[(self.times_s > first_s[0]) & (self.times_s < last_s[-1])]
        points_s = np.unique(np.concatenate([first_s, last_s, within]))
        rates = np.diff(self.until(points_s)) / np.diff(points_s)
        least: Floats = np.minimum.reduceat(rates, np.searchsorted(points_s, first_s))
        return least


class SignalCourse(NamedTuple):
    """The integral of a zone's signal over time, apart where it is positive and negative."""

    times_s: Floats
    positive: Floats
    negative: Floats

    def of_watts(self, low_w: float, high_w: float) -> Course:
        """Return the course of the least watts while positive and the most while negative."""
        return Course(self.times_s, low_w * self.positive + high_w * self.negative)


def courses_of(world: World, signal: Signal, until_s: float) -> tuple[SignalCourse, ...]:
    """Return the course of each zone's signal from 0 to `until_s`, per joule at the nodes' PUE.

    Raises BadInput where a grid has no data.
    """
    courses = []
    for name, series in zip(world.zones, zone_series(world), strict=True):
        assert series.pue_relative is not None, "a world's series tell it"
        values = (
            series.pue_relative
            * {
                "energy": np.ones(series.times_s.size),
                "carbon": series.carbon_g_per_kwh,
                "cost": series.price_per_mwh,
            }[signal]
        )
        inside = series.times_s[(series.times_s > 0.0) & (series.times_s < until_s)]
        times_s = np.concatenate([[0.0], inside, [until_s]])
        steps = steps_at(times_s[:-1], series.times_s)
        rates = held(steps, values, before=values[0]) / _UNIT_J[signal]
        if np.isnan(rates).any():
            pue = held(steps, series.pue_relative)
            lacks = "temperature" if np.isnan(pue).any() else signal
            raise BadInput(f"scenario {world.name}: {name} lacks {lacks} before {until_s:.0f} s")
        parts = np.diff(times_s) * np.stack([np.maximum(rates, 0.0), np.minimum(rates, 0.0)])
        sums = np.concatenate([np.zeros((2, 1)), np.cumsum(parts, axis=1)], axis=1)
        courses.append(SignalCourse(times_s, sums[0], sums[1]))
    return tuple(courses)


def groups_of(world: World, *, capped: bool = False) -> tuple[Group, ...]:
    """Return the nodes by what sets them apart, shapes that differ only in size together.

    With `capped` their watts are those under whichever cap.
    """
    nodes = world.nodes
    keys = np.stack(
        [nodes.zone, nodes.curve_class, nodes.speed, nodes.pue, nodes.gpu_idle_w,
         nodes.gpu_peak_w, nodes.gpu_capacity, nodes.cpu_capacity, nodes.sleep_w, nodes.wake_s,
         nodes.wake_w],
        axis=1,
    )  # fmt: skip
    _, group_of = np.unique(keys, axis=0, return_inverse=True)
    members = [np.flatnonzero(group_of == each) for each in range(group_of.max() + 1)]
    levels, sleep = LEVELS if capped else LEVELS[:1], sleep_columns(world)
    return tuple(_group(world, each, levels, sleep) for each in members)


def _group(world: World, members: np.ndarray, levels: Floats, sleep: SleepColumns) -> Group:
    nodes, first = world.nodes, members[0]
    pue, cores = float(nodes.pue[first]), float(nodes.cpu_capacity[first])
    amounts = [nodes.cpu_capacity, nodes.memory_capacity, nodes.gpu_capacity]
    total = [float(each[members].sum()) for each in amounts]
    largest = [float(each[members].max()) for each in amounts]
    saved_w, _, wake_j = (float(each[0, first]) for each in sleep)
    start = int(nodes.curve_class[first]) * CURVE_POINTS
    curve, points = world.curve_watts[start : start + CURVE_POINTS], np.linspace(0, 1, CURVE_POINTS)
    reached = points < world.utilisation_ratio
    loads = np.append(points[1:][reached[1:]], world.utilisation_ratio)
    above_w = np.outer(cpu_power(levels), np.interp(loads, points, curve) - curve[0]) + saved_w
    per_core = above_w / loads * world.utilisation_ratio / cores * pue
    board = (nodes.gpu_idle_w[first], nodes.gpu_peak_w[first], world.gpu_ratio)
    paces = np.stack([cpu_speed(levels), board_speed(levels, *board)])  # of jobs without and with
    without, with_ = (per_core / pace[:, None] for pace in paces)
    staying_w = board_watts(levels, *board) * pue
    board_w = staying_w / paces[1]
    steepest = float(np.diff(curve)[reached[:-1]].max()) * (CURVE_POINTS - 1)  # watts per full load
    deepest = min(cpu_speed(LEVELS).min(), board_speed(LEVELS, *board).min())
    return Group(
        int(nodes.zone[first]),
        (total[0], total[1], total[2]),
        (largest[0], largest[1], largest[2]),
        float(nodes.speed[first]),
        (_span(without), _span(with_)),
        steepest * world.utilisation_ratio / cores * pue,
        _span(board_w),
        _span(per_core),
        _span(staying_w),
        float(deepest),
        saved_w * pue,
        wake_j * pue,
    )


def _span(values: Floats) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def fits(jobs: Jobs, job: int, group: Group) -> bool:
    """Tell whether an empty node of the group has room for a worker of a job."""
    asked = (jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job])
    return all(
        amount <= most * (1 + _EPSILON) for amount, most in zip(asked, group.largest, strict=True)
    )


def idle_total(world: World, signal: Signal, until_s: float) -> float:
    """Return what the nodes take at least from 0 to `until_s`, whatever is placed on them.

    That is idling, or sleeping where they can, and nothing while they may be away: a node that
    sleeps when it would fail does not, so that it depends on the schedule whether it is. While
    prices are negative nobody is away, and a node that can sleep counts with the most that it could
    earn: at full load, or waking.
    """
    nodes = world.nodes
    idle_w, saved_w = idle_watts(world), sleep_columns(world).saved_w[0]
    most_w = np.where(saved_w > 0.0, highest_watts(world), idle_w)
    courses = courses_of(world, signal, until_s)
    positive, negative = (
        np.array([parts[-1] for parts in sums])[nodes.zone]
        for sums in zip(*((each.positive, each.negative) for each in courses), strict=True)
    )
    up = positive - _away(world, courses)
    return float((((idle_w - saved_w) * up + most_w * negative) * nodes.pue).sum())


def _away(world: World, courses: Sequence[SignalCourse]) -> Floats:
    """Return the integral of the signal, where it is positive, while each node may be away, [N]."""
    found, told = np.zeros(world.nodes.zone.size), world.outages
    for event, node in enumerate(told.node.tolist()):
        course = courses[world.nodes.zone[node]]
        until = np.interp(told.at_s[event], course.times_s, course.positive)
        found[node] += until if told.is_back[event] else -until
    return found
