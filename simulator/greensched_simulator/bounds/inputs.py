"""The inputs of a bound: the course of a signal, and the least that nodes take."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_core.units import JOULES_PER_KWH
from greensched_policies.billing.timelines import held, steps_at
from greensched_policies.costs.cost import JOULES_PER_MWH, Floats
from greensched_simulator.runs.simulation import zone_series
from greensched_simulator.runs.sleep_tables import sleep_columns
from greensched_simulator.world.world import World, highest_watts, idle_watts

SignalName = Literal["energy", "carbon", "cost"]
_UNIT_J = {"energy": 1.0, "carbon": JOULES_PER_KWH, "cost": JOULES_PER_MWH}


class CostCourse(NamedTuple):
    """The cumulative cost of running one job on one group; linear between the times."""

    times_s: Floats
    costs: Floats  # from the first time on

    def until(self, times_s: Floats) -> Floats:
        """Return the cost of running from the first time until each of `times_s`."""
        found: Floats = np.interp(times_s, self.times_s, self.costs)
        return found

    def of(self, begin_s: float, end_s: float) -> float:
        """Return the cost of running from one time to another."""
        return float(np.diff(self.until(np.array([begin_s, end_s])))[0])

    def least_run(self, first_s: Floats, last_s: Floats, runtime_s: float) -> Floats:
        """Return the least cost of a whole run that starts within each interval, [V].

        The intervals are consecutive. The cost is linear between the starts at which a run's begin
        or end meets a step, so the least cost is at one of these.
        """
        begin_s, end_s = first_s[0], last_s[-1]
        meeting = np.concatenate([self.times_s, self.times_s - runtime_s])
        meeting = meeting[(meeting > begin_s) & (meeting < end_s)]
        starts_s = np.unique(np.concatenate([first_s, last_s, meeting]))
        cost = self.until(starts_s + runtime_s) - self.until(starts_s)
        within = np.minimum.reduceat(cost, np.searchsorted(starts_s, first_s))
        return np.minimum(within, cost[np.searchsorted(starts_s, last_s)])

    def least_rate(self, first_s: Floats, last_s: Floats) -> Floats:
        """Return the least cost of a second within each interval, [V]; no interval is empty."""
        within = self.times_s[(self.times_s > first_s[0]) & (self.times_s < last_s[-1])]
        points_s = np.unique(np.concatenate([first_s, last_s, within]))
        rates = np.diff(self.until(points_s)) / np.diff(points_s)
        least: Floats = np.minimum.reduceat(rates, np.searchsorted(points_s, first_s))
        return least


class SignalCourse(NamedTuple):
    """The integrals over time of a zone's signal while it is positive and while it is negative."""

    times_s: Floats
    positive: Floats
    negative: Floats

    def of_watts(self, low_w: float, high_w: float) -> CostCourse:
        """Return the cost of `low_w` while the signal is positive, `high_w` while negative."""
        return CostCourse(self.times_s, low_w * self.positive + high_w * self.negative)

    def of_steps(self, times_s: Floats, low_w: Floats, high_w: float) -> CostCourse:
        """Return the cost of `low_w`, [K], between `times_s`, [K+1]; `high_w` while negative.

        It is known only at `times_s`.
        """
        positive, negative = (
            np.diff(np.interp(times_s, self.times_s, each))
            for each in (self.positive, self.negative)
        )
        return CostCourse(times_s, np.append(0.0, np.cumsum(low_w * positive + high_w * negative)))


def courses_of(world: World, signal: SignalName, until_s: float) -> tuple[SignalCourse, ...]:
    """Return the course of each zone's signal from 0 to `until_s`, per joule at the nodes' PUE.

    Raises BadInput where a grid has no data.
    """
    courses = []
    for name, series in zip(world.zones, zone_series(world), strict=True):
        assert series.pue_relative is not None, "a world's series have their PUE"
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


def idle_total(world: World, signal: SignalName, until_s: float) -> float:
    """Return the least that the nodes take from 0 to `until_s` under any schedule.

    Nodes idle, or sleep if they can, and take nothing while they may be away. Whether they are away
    depends on the schedule, since a sleeping node does not fail. While prices are negative, no node
    is away, and one that can sleep counts with the most that it could earn, at full load or waking.
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
    """Return the integral of the positive signal over the times when each node may be away, [N]."""
    found, outages = np.zeros(world.nodes.zone.size), world.outages
    for event, node in enumerate(outages.node.tolist()):
        course = courses[world.nodes.zone[node]]
        until = np.interp(outages.at_s[event], course.times_s, course.positive)
        found[node] += until if outages.is_back[event] else -until
    return found
