"""The zones' signals by slot, as input for planning."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from greensched_core.signals.chain import Forecast, GridSignals
from greensched_policies.planning.outlook import SLOT_S, Outlook, outlook_of


@dataclass(frozen=True, eq=False)
class Outlooks:
    """The forecasts of some zones, made at one time."""

    outlook: Outlook
    sources: tuple[str, ...]  # of each zone, "" where there is no forecast
    observed_s: tuple[float | None, ...]  # when each zone's oldest signal was read

    @cached_property
    def digest(self) -> str:
        """Return a hash of the forecast's values."""
        return hashlib.sha256(self.outlook.values.tobytes()).hexdigest()[:16]


def tell_the_same(before: Outlooks, now: Outlooks) -> bool:
    """Return whether a later forecast has the sources and values of one before.

    Only slots that both have are compared. A forecast that became too old differs, though nothing
    has announced that.
    """
    passed = round((now.outlook.begin_s - before.outlook.begin_s) / SLOT_S)
    if passed < 0 or before.sources != now.sources:
        return False
    left, values = before.outlook.values[:, :, passed:], now.outlook.values
    return np.array_equal(left, values[:, :, : left.shape[2]], equal_nan=True)


def slot_begin(now_s: float) -> float:
    """Return the begin of the slot that contains a time."""
    return now_s // SLOT_S * SLOT_S


def outlooks_of(
    signals: GridSignals, zones: Sequence[str], now_s: float, horizon_s: float
) -> Outlooks:
    """Return the outlook from the begin of the current slot.

    A slot is known if a forecast of the zone covers it. All other slots have estimates: the mean
    of that hour of the day, or the static value.
    """
    begin_s, slots = slot_begin(now_s), max(int(horizon_s // SLOT_S), 1)
    values = np.full((2, len(zones), slots), np.nan)
    known = np.ones(len(zones), np.int64)
    sources, observed = [], list[float | None]()
    for row, zone in enumerate(zones):
        found = signals.forecasts(zone, now_s)
        state = signals.zone(zone, now_s)
        for kind, (forecast, now) in enumerate(
            zip(found, (state.carbon, state.price), strict=True)
        ):
            if forecast is not None:
                values[kind, row] = _slots(forecast, begin_s, slots)
            elif now.value is not None:
                values[kind, row] = now.value
        ends = [each.series.end for each in found if each is not None]
        if ends:
            known[row] = max(int((max(ends) - begin_s) // SLOT_S), 1)
        sources.append("+".join(sorted({each.source for each in found if each is not None})))
        observed.append(min((each.known_at for each in found if each is not None), default=None))
    outlook = outlook_of(begin_s, SLOT_S, values[0], values[1], known)
    return Outlooks(outlook, tuple(sources), tuple(observed))


def _slots(forecast: Forecast, begin_s: float, slots: int) -> list[float]:
    edges = [begin_s + place * SLOT_S for place in range(slots + 1)]
    return [forecast.mean(edges[place], edges[place + 1]) for place in range(slots)]
