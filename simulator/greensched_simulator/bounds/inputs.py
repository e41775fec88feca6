"""What a bound is made of: the course of a signal, and what nodes take at least."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.billing.courses import held, steps_at
from greensched_policies.costs.cost import JOULES_PER_KWH, JOULES_PER_MWH, Floats
from greensched_simulator.runs.simulation import zone_series
from greensched_simulator.runs.sleep_tables import sleep_columns
from greensched_simulator.world.world import World, highest_watts, idle_watts

Signal = Literal["energy", "carbon", "cost"]
_UNIT_J = {"energy": 1.0, "carbon": JOULES_PER_KWH, "cost": JOULES_PER_MWH}


class CostCourse(NamedTuple):
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

    def of_watts(self, low_w: float, high_w: float) -> CostCourse:
        """Return the course of the least watts while positive and the most while negative."""
        return CostCourse(self.times_s, low_w * self.positive + high_w * self.negative)


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
