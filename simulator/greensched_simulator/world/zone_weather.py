"""A zone's PUE over time, by its weather."""

import math
from typing import NamedTuple

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.scenario.site import TemperatureConstant, TemperatureShape, Weather
from greensched_simulator.world.zone_steps import Steps, constant, from_file

_HOUR_S, _DAY_S = 3600.0, 86_400.0
# The weather's deviation halves in half a day: fronts pass within days.
_KEPT_IN_AN_HOUR = 0.5 ** (1.0 / 12.0)


class ZonePue(NamedTuple):
    """The PUE of a zone: its mean, which its nodes have, and its steps relative to that."""

    mean: float  # over the scenario's length
    relative: Steps  # to the mean; 1 is the mean


def pue_steps(scenario: Scenario, zone: str, seed: int, horizon_s: float) -> ZonePue | None:
    """Return a zone's PUE by its weather; None if no weather is given.

    Raises BadInput if a file cannot be read or holds no temperature within the scenario.
    """
    site = scenario.sites.get(zone)
    if site is None or site.weather is None:
        return None
    temperature = _temperature(scenario, zone, site.weather, seed, horizon_s)
    points = site.weather.pue
    pue = np.interp(
        temperature.values, [each.celsius for each in points], [each.pue for each in points]
    )
    mean = _mean(temperature.times_s, pue, scenario.length_s)
    if math.isnan(mean):
        raise BadInput(
            f"scenario {scenario.name}: {zone} has no temperature within its length: give a file "
            f"that covers it"
        )
    return ZonePue(mean, Steps(temperature.times_s, pue / mean))


def _temperature(
    scenario: Scenario, zone: str, weather: Weather, seed: int, horizon_s: float
) -> Steps:
    source = weather.temperature
    if isinstance(source, TemperatureConstant):
        return constant(source.constant)
    if isinstance(source, TemperatureShape):
        return _shaped(source, zone, scenario.start_s, seed, horizon_s)
    return from_file(source, scenario.start_s)


def _shaped(
    shape: TemperatureShape, zone: str, start_s: float, seed: int, horizon_s: float
) -> Steps:
    """Return degrees by full hour, each the value at the hour's middle; NaN at the end."""
    hours = math.ceil((horizon_s + start_s % _HOUR_S) / _HOUR_S)
    times_s: Floats = _HOUR_S * np.arange(hours + 1.0) - start_s % _HOUR_S
    dice = stream(seed, f"weather/{zone}").standard_normal(hours)
    drift: Floats = np.empty(hours)
    drift[0] = dice[0]
    spread = math.sqrt(1.0 - _KEPT_IN_AN_HOUR**2)  # the standard deviation stays 1
    for hour in range(1, hours):
        drift[hour] = _KEPT_IN_AN_HOUR * drift[hour - 1] + spread * dice[hour]
    middle_s = times_s[:-1] + _HOUR_S / 2 + start_s
    wave = np.cos(2.0 * math.pi * (middle_s - shape.warmest) / _DAY_S)
    celsius = np.full(hours + 1, math.nan)
    celsius[:-1] = shape.mean + shape.swing * wave + shape.noise * drift
    return Steps(times_s, celsius)


def _mean(times_s: Floats, values: Floats, length_s: float) -> float:
    """Return the mean of the known values over the scenario's length."""
    if values.size == 1:
        return float(values[0])
    lengths_s = np.diff(np.clip(times_s, 0.0, length_s))
    is_known = np.isfinite(values[:-1]) & (lengths_s > 0.0)
    if not is_known.any():
        return math.nan
    return float(np.average(values[:-1][is_known], weights=lengths_s[is_known]))
