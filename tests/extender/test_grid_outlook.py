"""The outlook of a second: exact for each runtime, for the zones of the view that asks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from greensched_core.signals.chain import GridSignals
from greensched_core.signals.static import load_static_zones
from greensched_core.signals.steps import NO_DATA, ZoneSignal
from greensched_core.signals.timestamps import format_timestamp
from greensched_extender.grid import OutlookCache
from greensched_policies.billing.accounting import bill_schedule
from greensched_policies.billing.timelines import BilledNodes, Placements, ZoneSeries
from greensched_policies.costs.cost import CostModel, curve_table

NOW, HOUR_S = 1_800_000_000.0, 3600.0
ZONES = ("", "DE", "FR", "nowhere")
AHEAD = (100.0, 500.0, 300.0)  # hourly, g/kWh; the price is a quarter of it


class Asked:
    """Answers look-ups and notes them."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.means: list[tuple[str, ...]] = []
        self.grid = OutlookCache(self.state_of, self.means_over)

    def state_of(self, zone: str, now: float) -> ZoneSignal:
        self.states.append(zone)
        return ZoneSignal(zone, NO_DATA, NO_DATA, "EUR")

    def means_over(
        self, zones: Sequence[str], now: float, runtime_s: float
    ) -> tuple[list[float], list[float]]:
        self.means.append(tuple(zones))
        return [100.0] * len(zones), [float("nan")] * len(zones)


def signals_ahead() -> GridSignals:
    """Return a table of which two zones have a forecast of three hours."""
    signals = GridSignals(load_static_zones())
    for zone, scale in (("DE", 1.0), ("FR", 0.1)):
        slots: list[dict[str, Any]] = [
            {
                "start": format_timestamp(NOW + hour * HOUR_S),
                "carbonGramsPerKwh": scale * grams,
                "pricePerMwh": scale * grams / 4,
            }
            for hour, grams in enumerate(AHEAD)
        ]
        status = {"observedAt": format_timestamp(NOW), "source": "test", "forecast": slots}
        raw = {"spec": {"zone": zone, "currency": "EUR"}, "status": status}
        assert not signals.upsert(zone.lower(), raw, NOW)
    return signals


def test_an_outlook_holds_for_its_second_and_its_runtime() -> None:
    grid, zones = Asked().grid, ("", "DE")
    first = grid.outlook(zones, 100.0, 60.0)
    assert grid.outlook(zones, 100.0, 61.0) is not first
    assert grid.outlook(zones, 100.9, 60.0) is first
    assert grid.outlook(zones, 101.0, 60.0) is not first


def test_zones_that_came_within_the_second_are_looked_up_at_once() -> None:
    grid = Asked().grid
    grid.outlook(("", "DE"), 100.0, 60.0)
    more = grid.outlook(("", "FR", "DE"), 100.9, 60.0)
    assert [signal.zone for signal in more.signals] == ["", "FR", "DE"]
    assert more.means.carbon_g_per_kwh.size == 3


def test_a_run_of_another_length_costs_one_look_up_of_all_means_the_day_one_a_second() -> None:
    asked, zones = Asked(), ("", "DE", "FR")
    for runtime_s in (60.0, 61.0, 60.0, 62.0):
        asked.grid.outlook(zones, 100.0, runtime_s)
    assert asked.means == [zones] * (1 + 3)
    assert asked.states == list(zones), "where values come from does not depend on the run"


@pytest.mark.parametrize("runtime_s", [1.0, 3592.0, 3593.0, 5400.5, 10_000.0])
def test_an_outlook_is_what_the_bill_over_the_run_comes_to(runtime_s: float) -> None:
    began = NOW + 7.25
    signals = signals_ahead()
    means = (
        OutlookCache(signals.zone, signals.zone_means).outlook(("", "DE"), began, runtime_s).means
    )
    one, window = np.ones(1), (began, began + runtime_s)
    bill = bill_schedule(
        BilledNodes(8 * one, np.zeros(1, np.int64), 0 * one, 0 * one, 0 * one, one,
                    np.zeros(1, np.int64)),
        Placements(np.zeros(1, np.int64), window[0] * one, window[1] * one, 4 * one, 0 * one),
        [ZoneSeries(NOW + HOUR_S * np.arange(3.0), np.array(AHEAD), np.array(AHEAD) / 4)],
        window,
        CostModel(curve_table([[100.0 + 10 * step for step in range(11)]]), 1.0, 1.0, False),
    )  # fmt: skip
    kwh = bill.energy_active_j[0] / 3.6e6
    assert bill.carbon_active_g[0] / kwh == pytest.approx(means.carbon_g_per_kwh[1], rel=1e-9)
    assert bill.cost_active[0] / kwh * 1e3 == pytest.approx(means.price_per_mwh[1], rel=1e-9)


@pytest.mark.parametrize("runtime_s", [0.0, 60.0, 1e5])
def test_zones_do_not_change_one_another(runtime_s: float) -> None:
    signals = signals_ahead()
    means = OutlookCache(signals.zone, signals.zone_means).outlook(ZONES, NOW, runtime_s).means
    alone = [signals.zone_means([zone], NOW, runtime_s) for zone in ZONES]
    assert means.carbon_g_per_kwh.tolist() == [carbon for (carbon,), _ in alone]
    assert str(means.price_per_mwh.tolist()) == str([price for _, (price,) in alone])


def test_a_mean_crosses_the_hour_and_says_where_it_comes_from() -> None:
    signals = signals_ahead()
    none, de, fr, nowhere = OutlookCache(signals.zone, signals.zone_means).outlook(
        ZONES, NOW, 2 * HOUR_S
    ).signals  # fmt: skip
    assert (de.carbon_g_per_kwh, de.price_per_mwh) == pytest.approx((300.0, 75.0))
    assert fr.carbon_g_per_kwh == pytest.approx(30.0)
    assert (de.carbon_step, de.carbon_age_s, de.currency) == ("gridsignal", 0.0, "EUR")
    assert {none.carbon_step, nowhere.carbon_step} == {"static-default"}
    assert (nowhere.price_per_mwh, nowhere.price_step) == (None, "none")


def test_what_holds_now_is_the_value_of_this_moment_in_each_named_zone() -> None:
    signals = signals_ahead()
    now = OutlookCache(signals.zone, signals.zone_means).now(ZONES, NOW + HOUR_S)
    assert list(now) == ["DE", "FR", "nowhere"]
    assert (now["DE"].carbon_g_per_kwh, now["FR"].price_per_mwh) == (500.0, 12.5)
