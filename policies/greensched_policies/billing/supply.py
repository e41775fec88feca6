"""Solar panels and battery at a zone's site, and what remains to be imported from the grid.

Self-consumption (Luthander, Widén, Nilsson and Palm, "Photovoltaic self-consumption in buildings: A
review", Applied Energy 142, 2015): the panels' yield serves the nodes first. A surplus charges the
battery, and what the battery cannot take is curtailed. A deficit is met by the battery, then by the
grid. The battery is never charged from the grid, and nothing is exported. The result is exact:
watts are constant between moments, which include those at which the battery is full or empty.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from greensched_policies.billing.timelines import (
    BilledNodes,
    Caps,
    NodeTimeline,
    Placements,
    Sleeps,
    ZoneSeries,
    held,
    joules_of,
    steps_at,
    timelines_of,
)
from greensched_policies.costs.cost import CostModel, Floats


class Battery(NamedTuple):
    """A battery, empty at first; capacity 0 means no battery."""

    capacity_j: float  # that a full battery gives
    charge_w: float  # at most
    discharge_w: float  # at most
    efficiency: float  # joules given per joule taken; all losses are in charging


NO_BATTERY = Battery(0.0, 0.0, 0.0, 1.0)


class SolarPlant(NamedTuple):
    """Solar panels and battery at a zone's site."""

    yield_w: Floats  # [T] of the panels, by the steps of the zone's series; NaN: no data
    battery: Battery = NO_BATTERY


BilledSite: TypeAlias = tuple[
    ZoneSeries, SolarPlant | None
]  # a zone's grid; None: no panels and no battery


class Balance(NamedTuple):
    """Sources and uses of a zone's watts between moments, [K], and joules stored at each.

    drawn = used + discharged + imported, and yielded = used + charged + curtailed.
    """

    start_s: Floats
    length_s: Floats
    drawn_w: Floats  # by all nodes, at the meter
    yield_w: Floats  # of the panels
    charge_w: Floats  # into the battery
    discharge_w: Floats  # out of it
    stored_j: Floats  # [K+1], the last one at the end

    @property
    def used_w(self) -> Floats:
        """Return the watts that went from the panels into the nodes."""
        return np.minimum(self.drawn_w, self.yield_w)

    @property
    def imported_w(self) -> Floats:
        """Return the watts that came from the grid."""
        return self.drawn_w - self.used_w - self.discharge_w

    @property
    def curtailed_w(self) -> Floats:
        """Return the watts of the panels that were not used."""
        return self.yield_w - self.used_w - self.charge_w

    def joules(self, watts: Floats) -> float:
        """Return the joules of `watts`, which are [K]."""
        return float((watts * self.length_s).sum())


def balance_of(times_s: Floats, drawn_w: Floats, yield_w: Floats, battery: Battery) -> Balance:
    """Return the balance between times, [K+1], for the watts drawn and yielded between them."""
    rows = []
    stored_j = 0.0
    lengths_s = np.diff(times_s).tolist()
    for place, (drawn, yielded) in enumerate(zip(drawn_w.tolist(), yield_w.tolist(), strict=True)):
        start_s = float(times_s[place])
        for length_s, charge_w, discharge_w, after_j in _dispatch(
            yielded - drawn, lengths_s[place], stored_j, battery
        ):
            rows.append((start_s, length_s, drawn, yielded, charge_w, discharge_w, stored_j))
            start_s, stored_j = start_s + length_s, after_j
    start, length, drawn_all, yielded_all, charged, given, stored = np.array(rows).reshape(-1, 7).T
    stored = np.append(stored, [stored_j])
    return Balance(start, length, drawn_all, yielded_all, charged, given, stored)


def _dispatch(
    surplus_w: float, length_s: float, stored_j: float, battery: Battery
) -> Iterator[tuple[float, float, float, float]]:
    """Yield seconds, watts in, watts out and joules stored after: until full or empty, and after.

    `surplus_w` is the panels' yield minus the nodes' draw. If it is NaN, the battery is not used.
    """
    taken_w = min(max(surplus_w, 0.0), battery.charge_w)
    given_w = min(max(-surplus_w, 0.0), battery.discharge_w)
    stored_w = taken_w * battery.efficiency - given_w
    limit_j = battery.capacity_j if stored_w > 0.0 else 0.0
    if stored_w == 0.0 or np.isnan(stored_w):
        yield length_s, 0.0, 0.0, stored_j
    elif (limit_j - stored_j) / stored_w >= length_s:
        after_j = min(max(stored_j + stored_w * length_s, 0.0), battery.capacity_j)
        yield length_s, taken_w, given_w, after_j
    else:
        until_s = max((limit_j - stored_j) / stored_w, 0.0)
        if until_s > 0.0:
            yield until_s, taken_w, given_w, limit_j
        yield length_s - until_s, 0.0, 0.0, limit_j


def balances_of(
    nodes: BilledNodes,
    placements: Placements,
    sites: Sequence[BilledSite],
    window_s: tuple[float, float],
    model: CostModel,
    sleeps: Sleeps,
    caps: Caps,
) -> list[Balance | None]:
    """Return the balance of each zone within the window; None without panels and battery."""
    if all(plant is None for _, plant in sites):
        return [None] * len(sites)
    zones = [series for series, _ in sites]
    timelines = zip(
        nodes.zone.tolist(),
        timelines_of(nodes, placements, zones, window_s, model, sleeps, caps),
        strict=True,
    )
    of_zone: dict[int, list[NodeTimeline]] = {}
    for zone, timeline in timelines:
        of_zone.setdefault(zone, []).append(timeline)
    return [
        None if plant is None else _balance(series, plant, of_zone.get(zone, []), window_s)
        for zone, (series, plant) in enumerate(sites)
    ]


def _balance(
    series: ZoneSeries,
    plant: SolarPlant,
    timelines: Sequence[NodeTimeline],
    window_s: tuple[float, float],
) -> Balance:
    within = (series.times_s > window_s[0]) & (series.times_s < window_s[1])
    times_s = np.unique(
        np.concatenate([series.times_s[within], *(each.start_s for each in timelines), window_s])
    )
    drawn_w = np.zeros(times_s.size - 1)
    for timeline in timelines:
        watts = timeline.cpu_w + timeline.gpu_w + timeline.idle_w
        watts = joules_of(
            watts + timeline.sleep_w + timeline.wake_w, timeline.pue, np.ones(watts.size)
        )
        drawn_w += held(steps_at(times_s[:-1], timeline.start_s), watts)
    yield_w = held(steps_at(times_s[:-1], series.times_s), plant.yield_w)
    return balance_of(times_s, drawn_w, yield_w, plant.battery)


def imported(series: ZoneSeries, balance: Balance | None) -> ZoneSeries:
    """Return the series that bills each joule that a node draws for its share of imports.

    Nodes share the imports of a moment by their watts, so that their bills add up to the zone's.
    """
    if balance is None:
        return series
    share = np.divide(
        balance.imported_w, balance.drawn_w, np.ones(balance.drawn_w.size),
        where=balance.drawn_w > 0.0,
    )  # fmt: skip
    share = np.clip(share, 0.0, 1.0)
    steps = steps_at(balance.start_s, series.times_s)

    def for_imports(values: Floats) -> Floats:
        return np.where(share == 0.0, 0.0, held(steps, values) * share)

    return ZoneSeries(
        balance.start_s,
        for_imports(series.carbon_g_per_kwh),
        for_imports(series.price_per_mwh),
        None if series.pue_relative is None else held(steps, series.pue_relative),
    )
