"""What the grids of a world do, and what a forecast made at its start says of it."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.cost import Floats
from greensched_simulator.grid_files import (
    CARBON_LIMITS_G_PER_KWH,
    PRICE_LIMITS_PER_MWH,
    Column,
    read_series,
)
from greensched_simulator.scenario_model import (
    G_PER_KWH,
    Carbon,
    CarbonConstant,
    CarbonFile,
    Grid,
    Price,
    PriceConstant,
    PriceFile,
    Scenario,
    Shape,
)
from greensched_simulator.seeds import stream
from greensched_simulator.synthetic_grid import SHAPES, GridZone, synthetic_slots

DAY_S = 86_400.0
_NOON_S = DAY_S / 2


class Grids(NamedTuple):
    """The grids' steps, zone after zone; each value holds from its time until the next.

    Times are seconds since the scenario's start, the first of a zone at 0 or before. NaN says that
    there is no data, as after the last hour of a file. The forecasts are those made at time 0;
    later ones have learned what came since.
    """

    starts: npt.NDArray[np.int64]  # [Z+1] where each zone's steps begin
    times_s: Floats  # [T]
    carbon_g_per_kwh: Floats  # [T]
    price_per_mwh: Floats  # [T] in the scenario's currency
    forecast_carbon_g_per_kwh: Floats  # [T]
    forecast_price_per_mwh: Floats  # [T]
    marginal_g_per_kwh: Floats = np.zeros(0)  # [T] or [0] where nobody told it


class _Steps(NamedTuple):
    """One signal of one zone; a constant has one step and no end."""

    times_s: Floats
    values: Floats


def column_of(source: CarbonFile | PriceFile) -> Column:
    """Return which figures of its file a source wants, in g/kWh or per MWh."""
    is_utc = source.time_zone == "UTC"
    if isinstance(source, CarbonFile):
        limits, factor = CARBON_LIMITS_G_PER_KWH, G_PER_KWH[source.unit]
    else:
        limits, factor = PRICE_LIMITS_PER_MWH, _per_mwh(source.unit)
    return Column(source.time_column, source.column, limits, factor, is_utc)


def build_grids(scenario: Scenario, seed: int, horizon_s: float) -> Grids:
    """Return the grids of all zones, in the scenario's order, from 0 to `horizon_s`.

    Where a file ends before, so do the steps; all but constants end with NaN. Raises BadInput when
    a file cannot be read.
    """
    zones = [_zone(scenario, name, seed, horizon_s) for name in scenario.grids]
    starts = np.cumsum([0, *(zone.times_s.size for zone in zones)]).astype(np.int64)
    grids = Grids(starts, *(np.concatenate(columns) for columns in zip(*zones, strict=True)))
    is_told = all(grid.marginal is not None for grid in scenario.grids.values())
    return grids if is_told else grids._replace(marginal_g_per_kwh=np.zeros(0))


class _Zone(NamedTuple):
    times_s: Floats
    carbon: Floats
    price: Floats
    carbon_forecast: Floats
    price_forecast: Floats
    marginal: Floats


def _zone(scenario: Scenario, name: str, seed: int, horizon_s: float) -> _Zone:
    grid = scenario.grids[name]
    carbon = _carbon(scenario, name, grid.carbon, seed, horizon_s)
    marginal = carbon
    if grid.marginal is not None:
        marginal = _carbon(scenario, name, grid.marginal, seed, horizon_s)
    price = _price(scenario, name, grid.price, seed, horizon_s)
    times_s = _merged((carbon, marginal, price), horizon_s)
    carbon_values, price_values = _held(carbon, times_s), _held(price, times_s)
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
        price_values + scale * price_error,  # a price may be zero or below
        _held(marginal, times_s),
    )


def _carbon(scenario: Scenario, name: str, source: Carbon, seed: int, horizon_s: float) -> _Steps:
    if isinstance(source, CarbonConstant):
        return _constant(source.constant)
    if isinstance(source, Shape):
        return _shaped(scenario, name, source, seed, horizon_s)[0]
    return _from_file(source, scenario.start_s)


def _price(scenario: Scenario, name: str, source: Price, seed: int, horizon_s: float) -> _Steps:
    if isinstance(source, Shape):
        return _shaped(scenario, name, source, seed, horizon_s)[1]
    rates: Mapping[str, float] = {scenario.currency: 1.0} | scenario.exchange_rates
    rate = rates[source.unit.partition("/")[0]]
    if isinstance(source, PriceConstant):
        return _constant(source.constant * _per_mwh(source.unit) * rate)
    steps = _from_file(source, scenario.start_s)
    return steps._replace(values=steps.values * rate)


def _constant(value: float) -> _Steps:
    return _Steps(np.array([-math.inf]), np.array([value]))  # it has always held


def _from_file(source: CarbonFile | PriceFile, start_s: float) -> _Steps:
    series = read_series(source.file, column_of(source))
    times_s = series.times_s - start_s
    first = max(int(np.searchsorted(times_s, 0.0, side="right")) - 1, 0)
    return _Steps(times_s[first:], series.values[first:])


def _shaped(
    scenario: Scenario, name: str, shape: Shape, seed: int, horizon_s: float
) -> tuple[_Steps, _Steps]:
    """Return carbon and price; both come from the same days of the zone."""
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
    return _Steps(times_s, carbon), _Steps(times_s, price)


def _merged(signals: Sequence[_Steps], horizon_s: float) -> Floats:
    """Return the times at which any changes, from 0 or before to the horizon or after.

    No time is put between: steps that are even stay so, which makes them quick to find.
    """
    changing = [each.times_s for each in signals if each.times_s.size > 1]
    if not changing:
        return np.zeros(1)
    times_s: Floats = np.unique(np.concatenate(changing))
    first = max(int(np.searchsorted(times_s, 0.0, side="right")) - 1, 0)
    last = int(np.searchsorted(times_s, horizon_s))
    return times_s[first : last + 1]


def _held(steps: _Steps, times_s: Floats) -> Floats:
    """Return the values that hold at some times; NaN before the first, and from the last on."""
    place = np.searchsorted(steps.times_s, times_s, side="right") - 1
    values: Floats = np.where(place < 0, math.nan, steps.values[np.maximum(place, 0)])
    if steps.times_s.size > 1:
        values[-1] = math.nan  # it would hold for ever
    return values


def _forecast_error(grid: Grid, times_s: Floats, dice: np.random.Generator) -> Floats:
    """Return relative errors: 0 at the start, then a random walk.

    Its standard deviation is `forecast_error` at 24 h and grows with the square root of the lead
    time; errors of neighbouring hours are close to each other, as those of real forecasts are.
    """
    lead_s = np.maximum(times_s, 0.0)
    paces = np.sqrt(np.diff(lead_s, prepend=0.0) / DAY_S)
    error: Floats = grid.forecast_error * np.cumsum(paces * dice.standard_normal(times_s.size))
    return error


def _per_mwh(unit: str) -> float:
    return 1000.0 if unit.endswith("/kWh") else 1.0
