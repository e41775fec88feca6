"""One signal of one zone as steps, from a file or a constant; merges several."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from greensched_policies.billing import timelines
from greensched_policies.costs.cost import Floats
from greensched_simulator.formats.grid_files import (
    CARBON_LIMITS_G_PER_KWH,
    PRICE_LIMITS_PER_MWH,
    TEMPERATURE_LIMITS_C,
    YIELD_LIMITS,
    WantedColumn,
    read_series,
)
from greensched_simulator.scenario.model import G_PER_KWH, CarbonFile, PriceFile
from greensched_simulator.scenario.site import SolarFile, TemperatureFile

Source = CarbonFile | PriceFile | TemperatureFile | SolarFile  # signals read from a file


class Steps(NamedTuple):
    """One signal of one zone; a constant has one step and no end."""

    times_s: Floats  # since the scenario's start
    values: Floats


def column_of(source: Source) -> WantedColumn:
    """Return the column of its file that a source reads.

    Values are in g/kWh, money per MWh, degrees Celsius, or kW per kWp.
    """
    is_utc = source.time_zone == "UTC"
    if isinstance(source, TemperatureFile):
        limits, factor = TEMPERATURE_LIMITS_C, 1.0
    elif isinstance(source, SolarFile):
        limits, factor = YIELD_LIMITS, 1e-3 if source.unit == "W/m2" else 1.0
    elif isinstance(source, CarbonFile):
        limits, factor = CARBON_LIMITS_G_PER_KWH, G_PER_KWH[source.unit]
    else:
        limits, factor = PRICE_LIMITS_PER_MWH, per_mwh(source.unit)
    return WantedColumn(source.time_column, source.column, limits, factor, is_utc)


def per_mwh(unit: str) -> float:
    """Return the factor that converts a price in a unit into one per MWh."""
    return 1000.0 if unit.endswith("/kWh") else 1.0


def constant(value: float) -> Steps:
    """Return a value that holds at all times."""
    return Steps(np.array([-math.inf]), np.array([value]))


def from_file(source: Source, start_s: float) -> Steps:
    """Return a file's steps from `start_s` on; raise BadInput if it cannot be read."""
    series = read_series(source.file, column_of(source))
    times_s = series.times_s - start_s
    first = max(int(np.searchsorted(times_s, 0.0, side="right")) - 1, 0)
    return Steps(times_s[first:], series.values[first:])


def merged(signals: Sequence[Steps], horizon_s: float) -> Floats:
    """Return the times at which any signal changes, from 0 or before to the horizon or after.

    No other times are inserted, so even steps stay even and can be found quickly.
    """
    changing = [each.times_s for each in signals if each.times_s.size > 1]
    if not changing:
        return np.zeros(1)
    times_s: Floats = np.unique(np.concatenate(changing))
    first = max(int(np.searchsorted(times_s, 0.0, side="right")) - 1, 0)
    last = int(np.searchsorted(times_s, horizon_s))
    return times_s[first : last + 1]


def values_at(steps: Steps, times_s: Floats) -> Floats:
    """Return the values at `times_s`; NaN before the first step, and from the last one on."""
    values = timelines.held(timelines.steps_at(times_s, steps.times_s), steps.values)
    if steps.times_s.size > 1:
        values[-1] = math.nan  # otherwise it would hold forever
    return values
