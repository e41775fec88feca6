"""The forecast of carbon and price in equal slots, from which all decisions on it are made."""

from dataclasses import dataclass

import numpy as np

from greensched_core.units import SECONDS_PER_DAY
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slot_observation import ComingDay
from greensched_policies.library.grid_table import GridTable, grid_table

CARBON, PRICE = 0, 1  # rows of the values
SLOT_S = 900.0  # of plans: markets and forecasts have steps of 15 minutes or more


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Carbon and price of Z zones in S slots; the last slot's hold for ever."""

    begin_s: float  # seconds since the epoch when the first slot begins
    slot_s: float
    grid: GridTable  # a step for each slot, its times from the first slot's begin on

    @property
    def zones(self) -> int:
        """The number of zones."""
        return int(self.grid.per_step.size)

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self.grid.times_s.size // self.zones

    @property
    def values(self) -> Floats:
        """Carbon in g/kWh and price in money per MWh, [2,Z,S]; NaN: no data."""
        return self.grid.values.reshape(2, self.zones, self.slots)

    @property
    def known(self) -> Integers:
        """How many slots of each zone a forecast covers, [Z]; those after them are estimates."""
        known: Integers = np.rint(self.grid.known_until_s / self.slot_s).astype(np.int64)
        return known

    def slots_ahead(self, now_s: float) -> Integers:
        """Return the number of starts from `now_s`, one per slot, within known slots, [Z]."""
        begun = int((now_s - self.begin_s) // self.slot_s)
        return np.maximum(self.known - begun, 0)


def coming_day(outlook: Outlook, now_s: float) -> ComingDay:
    """Return the means of what is forecast from `now_s` on, for a day."""
    begun = min(max(int((now_s - outlook.begin_s) // outlook.slot_s), 0), outlook.slots - 1)
    ahead = outlook.values[:, :, begun : begun + int(SECONDS_PER_DAY // outlook.slot_s)]
    counts = (~np.isnan(ahead)).sum(axis=(1, 2))
    sums = np.nansum(ahead, axis=(1, 2))
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return ComingDay(*means.tolist())


def outlook_of(
    begin_s: float,
    slot_s: float,
    carbon_g_per_kwh: Floats,
    price_per_mwh: Floats,
    known: Integers | None = None,
) -> Outlook:
    """Return the outlook of [Z,S] values; NaN is no data, prices may be negative.

    Without `known` the forecast covers all slots. Raises ValueError when shapes do not
    match, there is no slot, or a value is infinite.
    """
    if carbon_g_per_kwh.shape != price_per_mwh.shape or not carbon_g_per_kwh.size:
        raise ValueError(
            f"carbon {carbon_g_per_kwh.shape} and price {price_per_mwh.shape} need one shape, "
            "[zones, slots], with at least one of each"
        )
    values = np.stack([carbon_g_per_kwh, price_per_mwh]).astype(np.float64)
    if np.isinf(values).any() or not slot_s > 0.0:
        raise ValueError("values must be finite, and slots longer than 0 s")
    zones, slots = values.shape[1:]
    covered = np.full(zones, slots) if known is None else np.asarray(known, np.int64)
    if covered.shape != (zones,):
        raise ValueError(f"known slots have shape {covered.shape}; give one number for each zone")
    covered = np.minimum(covered, slots)
    starts = np.arange(zones + 1, dtype=np.int64) * slots
    times_s = np.tile(np.arange(slots) * slot_s, zones)
    carbon, price = (each.ravel() for each in values)
    grid = grid_table(starts, times_s, carbon, price, known_until_s=covered * slot_s)
    return Outlook(begin_s, slot_s, grid)
