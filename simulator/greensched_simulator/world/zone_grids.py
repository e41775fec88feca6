"""The grids of a world, and the forecasts made at its start."""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.formats.synthetic_grid import SHAPES, GridZone, synthetic_slots
from greensched_simulator.scenario.model import (
    Carbon,
    CarbonConstant,
    Grid,
    Price,
    PriceConstant,
    Scenario,
    Shape,
)
from greensched_simulator.world.zone_solar import yield_steps
from greensched_simulator.world.zone_steps import (
    Steps,
    constant,
    from_file,
    merged,
    per_mwh,
    values_at,
)
from greensched_simulator.world.zone_weather import ZonePue, pue_steps

DAY_S = 86_400.0
_NOON_S = DAY_S / 2


class Grids(NamedTuple):
    """The grids' steps, ordered by zone; each value holds from its time until the next.

    Times are seconds since the scenario's start, the first of a zone at 0 or before. NaN means no
    data, as after the last hour of a file. The forecasts are those made at time 0; later ones also
    use the values seen since.
    """

    starts: npt.NDArray[np.int64]  # [Z+1] where each zone's steps begin
    times_s: Floats  # [T]
    carbon_g_per_kwh: Floats  # [T]
    price_per_mwh: Floats  # [T] in the scenario's currency
    forecast_carbon_g_per_kwh: Floats  # [T]
    forecast_price_per_mwh: Floats  # [T]
    marginal_g_per_kwh: Floats = np.zeros(0)  # [T]; [0]: not given
    # [T] PUE relative to that of the zone's nodes, 1 if it is theirs; [0] without any weather
    pue_relative: Floats = np.zeros(0)
    pue_mean: Floats = np.zeros(0)  # [Z] of the nodes, NaN if each has its own; [0] likewise
    solar_w: Floats = np.zeros(0)  # [T] that the panels yield; [0] without panels


def build_grids(scenario: Scenario, seed: int, horizon_s: float) -> Grids:
    """Return the grids of all zones, in the scenario's order, from 0 to `horizon_s`.

    The steps of a zone end early if its file does; all except constants end with NaN. Raises
    BadInput if a file cannot be read.
    """
    zones = [_zone(scenario, name, seed, horizon_s) for name in scenario.grids]
    starts = np.cumsum([0, *(zone.times_s.size for zone in zones)]).astype(np.int64)
    grids = Grids(starts, *(np.concatenate(columns) for columns in zip(*zones, strict=True)))
    if not all(grid.marginal is not None for grid in scenario.grids.values()):
        grids = grids._replace(marginal_g_per_kwh=np.zeros(0))
    if not any(site.weather for site in scenario.sites.values()):
        grids = grids._replace(pue_relative=np.zeros(0), pue_mean=np.zeros(0))
    if not any(site.solar for site in scenario.sites.values()):
        grids = grids._replace(solar_w=np.zeros(0))
    return grids


def relative_pue(grids: Grids) -> Floats:
    """Return the PUE of each step relative to that of the zone's nodes, [T]; NaN: unknown."""
    return grids.pue_relative if grids.pue_relative.size else np.ones(grids.times_s.size)


class _Zone(NamedTuple):
    times_s: Floats
    carbon: Floats
    price: Floats
    carbon_forecast: Floats
    price_forecast: Floats
    marginal: Floats
    pue_relative: Floats
    pue_mean: Floats  # [1]
    solar_w: Floats


def _zone(scenario: Scenario, name: str, seed: int, horizon_s: float) -> _Zone:
    grid = scenario.grids[name]
    carbon = _carbon(scenario, name, grid.carbon, seed, horizon_s)
    marginal = carbon
    if grid.marginal is not None:
        marginal = _carbon(scenario, name, grid.marginal, seed, horizon_s)
    price = _price(scenario, name, grid.price, seed, horizon_s)
    pue = pue_steps(scenario, name, seed, horizon_s) or ZonePue(math.nan, constant(1.0))
    solar = yield_steps(scenario, name, seed, horizon_s)
    times_s = merged((carbon, marginal, price, pue.relative, solar), horizon_s)
    carbon_values, price_values = values_at(carbon, times_s), values_at(price, times_s)
    carbon_error, price_error = (
        _forecast_error(grid, times_s, stream(seed, f"forecast/{kind}/{name}"))
        * (steps.times_s.size > 1)  # a constant is known
        for kind, steps in (("carbon", carbon), ("price", price))
    )
    known = np.abs(price_values[np.isfinite(price_values)])
    scale = float(known.mean()) if known.size else 0.0
    return _Zone(
        times_s,
        carbon_values,
        price_values,
        carbon_values * np.exp(carbon_error),  # stays positive
        price_values + scale * price_error,  # a price may be zero or negative
        values_at(marginal, times_s),
        values_at(pue.relative, times_s),
        np.array([pue.mean]),
        values_at(solar, times_s),
    )


def _carbon(scenario: Scenario, name: str, source: Carbon, seed: int, horizon_s: float) -> Steps:
    if isinstance(source, CarbonConstant):
        return constant(source.constant)
    if isinstance(source, Shape):
        return _shaped(scenario, name, source, seed, horizon_s)[0]
    return from_file(source, scenario.start_s)


def _price(scenario: Scenario, name: str, source: Price, seed: int, horizon_s: float) -> Steps:
    if isinstance(source, Shape):
        return _shaped(scenario, name, source, seed, horizon_s)[1]
    rates: Mapping[str, float] = {scenario.currency: 1.0} | scenario.exchange_rates
    rate = rates[source.unit.partition("/")[0]]
    if isinstance(source, PriceConstant):
        return constant(source.constant * per_mwh(source.unit) * rate)
    steps = from_file(source, scenario.start_s)
    return steps._replace(values=steps.values * rate)


def _shaped(
    scenario: Scenario, name: str, shape: Shape, seed: int, horizon_s: float
) -> tuple[Steps, Steps]:
    """Return carbon and price, both of the same days of the zone."""
    like = SHAPES[shape.shape]
    zone = GridZone(
        name, like.carbon_mean, like.carbon_noon_swing, like.price_mean, like.price_noon_swing,
        like.noise,
    )  # fmt: skip
    day_starts_s = (scenario.start_s + _NOON_S - shape.noon) % DAY_S
    slots = synthetic_slots(zone, seed=seed, span_s=horizon_s, day_starts_s=day_starts_s)
    times_s = np.array([slot.start_s for slot in slots] + [horizon_s])
    carbon = np.array([slot.carbon_g_per_kwh for slot in slots] + [math.nan])
    price = np.array([slot.price_per_mwh for slot in slots] + [math.nan])
    return Steps(times_s, carbon), Steps(times_s, price)


def _forecast_error(grid: Grid, times_s: Floats, dice: np.random.Generator) -> Floats:
    """Return relative errors: 0 at the start, then a random walk.

    Its standard deviation is `forecast_error` at 24 h and grows with the square root of the lead
    time. Errors of neighbouring hours are close to each other, as in real forecasts.
    """
    lead_s = np.maximum(times_s, 0.0)
    steps = np.sqrt(np.diff(lead_s, prepend=0.0) / DAY_S)
    error: Floats = grid.forecast_error * np.cumsum(steps * dice.standard_normal(times_s.size))
    return error
