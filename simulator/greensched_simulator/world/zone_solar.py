"""The yield of a zone's panels over time, and its battery."""

import math

import numpy as np

from greensched_policies.billing.supply import NO_BATTERY, Battery
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.scenario.model import Scenario
from greensched_simulator.scenario.site import Site, SolarConstant, SolarFile, SolarShape
from greensched_simulator.world.zone_steps import Steps, constant, from_file

_SLOT_S, _DAY_S = 900.0, 86_400.0
_J_PER_KWH = 3.6e6


def yield_steps(scenario: Scenario, zone: str, seed: int, horizon_s: float) -> Steps:
    """Return the watts that a zone's panels yield; 0 without panels.

    Raises BadInput if a file cannot be read.
    """
    site = scenario.sites.get(zone)
    if site is None or site.solar is None:
        return constant(0.0)
    solar, source = site.solar, site.solar.output
    peak_w = 1000.0 * solar.peak_kw
    if isinstance(source, SolarConstant):
        return constant(source.constant * peak_w)
    if isinstance(source, SolarShape):
        steps = _shaped(source, zone, scenario.start_s, seed, horizon_s)
    else:
        steps = from_file(source, scenario.start_s)
    if isinstance(source, SolarFile) and source.unit == "W/m2":
        peak_w *= solar.performance_ratio
    return steps._replace(values=steps.values * peak_w)


def battery_of(site: Site | None) -> Battery | None:
    """Return a site's battery, `NO_BATTERY` if it has only panels; None without panels."""
    if site is None or site.solar is None:
        return None
    if site.battery is None:
        return NO_BATTERY
    battery = site.battery
    return Battery(
        battery.capacity_kwh * _J_PER_KWH,
        1000.0 * battery.charge_kw,
        1000.0 * battery.discharge_kw,
        battery.efficiency,
    )


def _shaped(shape: SolarShape, zone: str, start_s: float, seed: int, horizon_s: float) -> Steps:
    """Return kW per kWp by quarter hour, each the value at its middle; NaN at the end."""
    slots = math.ceil((horizon_s + start_s % _SLOT_S) / _SLOT_S)
    times_s = np.linspace(0.0, slots * _SLOT_S, slots + 1) - start_s % _SLOT_S
    # Days are from midnight to midnight of solar time; the first one is cut at the start.
    since_s = times_s[:-1] + _SLOT_S / 2 + start_s - (shape.noon - _DAY_S / 2)
    day = np.floor(since_s / _DAY_S).astype(np.int64)
    day -= day[0]
    after_sunrise_s = since_s % _DAY_S - (_DAY_S - shape.daylight) / 2
    part = after_sunrise_s / shape.daylight
    clear = np.where((part > 0.0) & (part < 1.0), np.sin(part * math.pi), 0.0)
    dark = stream(seed, f"clouds/{zone}").random(int(day[-1]) + 1)
    values = np.full(slots + 1, math.nan)
    values[:-1] = shape.best * clear * (1.0 - shape.clouds * dark[day])
    return Steps(times_s, values)
