"""The forecast of carbon and price in equal slots, and its means over many runs at once.

The simulator's `forecast_window.py` computes the same for one workload at a time; a test compares
both.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.observation import LEAST_MAGNITUDE

CARBON, PRICE = 0, 1  # rows of the values
# Rows of the result of `seen_from`: each signal at a run's start, and its mean over the run.
CARBON_AT_START, CARBON_OVER_RUN, PRICE_AT_START, PRICE_OVER_RUN = range(4)


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """Carbon and price of Z zones in S slots, with running sums; the last slot's hold for ever.

    Built once for all decisions on one forecast.
    """

    begin_s: float  # seconds since the epoch when the first slot begins
    slot_s: float
    values: Floats  # [2,Z,S] g/kWh and money per MWh; NaN: no data
    known: Integers  # [Z] slots, from the first on, that a forecast covers; others are estimates
    held: Floats  # [2,Z,S] the values, 0 where there is no data
    sums: Floats  # [2,Z,S] integral of `held` from the first slot's begin to each slot's begin
    gaps: Integers  # [2,Z,S] slots without data before each one

    @property
    def zones(self) -> int:
        """The number of zones."""
        return int(self.values.shape[1])

    def slots_ahead(self, now_s: float) -> Integers:
        """Return the number of starts from `now_s`, one per slot, within known slots, [Z]."""
        begun = int((now_s - self.begin_s) // self.slot_s)
        return np.maximum(self.known - begun, 0)


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
    missing = np.isnan(values)
    held = np.where(missing, 0.0, values)
    sums, gaps = np.zeros(values.shape), np.zeros(values.shape, np.int64)
    sums[:, :, 1:] = np.cumsum(held[:, :, :-1] * slot_s, axis=2)
    gaps[:, :, 1:] = np.cumsum(missing[:, :, :-1], axis=2)
    return Outlook(begin_s, slot_s, values, np.minimum(covered, slots), held, sums, gaps)


def seen_from(outlook: Outlook, now_s: float, runtime_s: Floats, count: int) -> Floats:
    """Return carbon and price at the start and over the run, for `count` starts, [4,B,Z,count].

    Expected runtimes are [B,Z]; starts are one slot apart from `now_s` on. NaN where data is
    missing, and where the runtime is infinite: no node of the zone can take the workload.
    """
    can_run = np.isfinite(runtime_s)
    runs_s = np.where(can_run, runtime_s, outlook.slot_s)[:, :, None]
    begins_s = now_s - outlook.begin_s + np.arange(count) * np.float64(outlook.slot_s)
    ends_s = begins_s + runs_s
    at, until = _slot_at(outlook, begins_s), _slot_at(outlook, ends_s)
    begun_s, ended_s = begins_s - at * outlook.slot_s, ends_s - until * outlook.slot_s
    is_one = at == until
    seen = np.empty((4, *ends_s.shape))
    for signal in (CARBON, PRICE):
        at_start, over_run = seen[2 * signal], seen[2 * signal + 1]
        at_start[:] = outlook.values[signal][:, at]
        begun = outlook.sums[signal][:, at] + begun_s * outlook.held[signal][:, at]
        _gather(outlook.held[signal], until, over_run)
        over_run *= ended_s
        over_run += _gather(outlook.sums[signal], until, np.empty(over_run.shape))
        over_run -= begun
        over_run *= 1.0 / runs_s
        over_run[_touches_gap(outlook, signal, at, until, ended_s)] = np.nan
        np.copyto(over_run, at_start, where=is_one)
    seen[:, ~can_run] = np.nan
    return seen


def _slot_at(outlook: Outlook, since_begin_s: Floats) -> Integers:
    """Return the index of the slot at each time; the first slot before, the last slot after."""
    places = (since_begin_s / outlook.slot_s).astype(np.int64)
    return np.clip(places, 0, outlook.values.shape[2] - 1, out=places)


def _gather(table: Floats, places: Integers, into: Floats) -> Floats:
    """Write a table's values, [Z,S], at places [B,Z,N] into `into` and return it."""
    for zone in range(table.shape[0]):
        into[:, zone] = table[zone].take(places[:, zone])
    return into


def _touches_gap(
    outlook: Outlook, signal: int, at: Integers, until: Integers, ended_s: Floats
) -> npt.NDArray[np.bool_] | slice:
    """Return which runs lack data of a signal; an empty slice if none does."""
    missing, gaps = np.isnan(outlook.values[signal]), outlook.gaps[signal]
    if not missing.any():
        return slice(0)
    zone = np.arange(outlook.zones)[:, None]
    ends_in_gap = missing[zone, until] & (ended_s > 0.0)
    touched: npt.NDArray[np.bool_] = gaps[zone, until] + ends_in_gap > gaps[:, at]
    return touched


def fill_gaps(seen: Floats) -> Floats:
    """Return the signals `seen`, [4,B,Z,S], with each workload's mean where data is missing.

    The mean is 1 without any data. Only an array with missing data is copied.
    """
    missing = np.isnan(seen)
    if not missing.any():
        return seen
    count = (~missing).sum(axis=(2, 3))
    known = np.where(missing, 0.0, seen)
    mean = np.where(count > 0, known.sum(axis=(2, 3)) / np.maximum(count, 1), 1.0)
    filled: Floats = np.where(missing, mean[:, :, None, None], seen)
    return filled


def weighed(seen: Floats, by_carbon: Floats, by_price: Floats) -> Floats:
    """Return the weighted sum of carbon and price over the run, [B,Z,S]; lower is better.

    Each is relative to the mean of its magnitudes among a workload's candidates. Weights are [B].
    """
    carbon, price = seen[CARBON_OVER_RUN], seen[PRICE_OVER_RUN]
    weighted: Floats = carbon * (by_carbon / _mean_magnitude(carbon))[:, None, None]
    weighted += price * (by_price / _mean_magnitude(price))[:, None, None]
    return weighted


def _mean_magnitude(values: Floats) -> Floats:
    mean: Floats = np.abs(values).mean(axis=(1, 2))
    return np.maximum(mean, LEAST_MAGNITUDE)
