import math
import time
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.errors import BadInput
from greensched_core.signals.chain import GridSignals
from greensched_core.signals.currencies import Currencies
from greensched_core.signals.grid import GridFault, SignalFault
from greensched_core.signals.static import load_static_zones, parse_static_zones
from greensched_core.signals.steps import AgeLimits, SignalKind, Step
from greensched_core.signals.timestamps import format_timestamp

NOW = 1_795_255_200.0
LIMITS = AgeLimits(fresh_s=3_600.0, max_stale_s=7_200.0)
TABLE = """
[default]
carbon_grams_per_kwh = 481
[zones.DE]
carbon_grams_per_kwh = 381
price_per_mwh = 80
currency = "EUR"
[zones.US-TEX-ERCO]
price_per_mwh = 30
currency = "USD"
"""


class Counts:
    def __init__(self) -> None:
        self.steps: Counter[tuple[SignalKind, Step]] = Counter()
        self.faults: list[tuple[str, GridFault]] = []

    def step(self, kind: SignalKind, step: Step, count: int) -> None:
        self.steps[kind, step] += count

    def fault(self, zone: str, fault: SignalFault) -> None:
        self.faults.append((zone, fault.reason))


def chain(counts: Counts | None = None, rates: dict[str, float] | None = None) -> GridSignals:
    counts = counts or Counts()
    return GridSignals(
        parse_static_zones(TABLE, "a test"),
        currencies=Currencies("EUR", rates or {}),
        limits=LIMITS,
        count_steps=counts.step,
        count_fault=counts.fault,
    )


def signal(
    carbon: float | None = 300.0,
    price: float | None = 60.0,
    *,
    at: float = NOW,
    zone: str = "DE",
    currency: str = "EUR",
) -> dict[str, Any]:
    current = {"carbonGramsPerKwh": carbon, "pricePerMwh": price}
    slot = {"start": format_timestamp(at + 1_800), **current}
    status = {
        "observedAt": format_timestamp(at),
        "source": "t",
        "current": current,
        "forecast": [slot],
        "forecastEnd": format_timestamp(at + 86_400),
    }
    return {"spec": {"zone": zone, "currency": currency}, "status": status}


@pytest.mark.parametrize(
    ("age_s", "step", "grams"),
    [
        pytest.param(0.0, Step.GRID_SIGNAL, 300.0, id="just-read"),
        pytest.param(3_600.0, Step.GRID_SIGNAL, 300.0, id="as-old-as-fresh-may-be"),
        pytest.param(3_601.0, Step.LAST_GOOD, 300.0, id="stale"),
        pytest.param(7_200.0, Step.LAST_GOOD, 300.0, id="as-old-as-it-may-be"),
        pytest.param(7_201.0, Step.STATIC_ZONE, 381.0, id="too-old"),
    ],
)
def test_a_signal_ages_down_the_chain(age_s: float, step: Step, grams: float) -> None:
    signals = chain()
    signals.upsert("de", signal(), NOW)
    found = signals.zone("DE", NOW + age_s).carbon
    assert (found.step, found.value) == (step, grams)
    assert found.age_s == (age_s if step is not Step.STATIC_ZONE else None)
    assert signals.zone_means(["DE"], NOW + age_s, 60.0)[0] == [grams]


def test_each_signal_falls_back_on_its_own() -> None:
    signals = chain()
    signals.upsert("de", signal(), NOW)
    signals.upsert("de", signal(carbon=250.0, price=None, at=NOW + 60), NOW + 60)
    found = signals.zone("DE", NOW + 100)
    assert (found.carbon.step, found.carbon.value, found.carbon.age_s) == ("gridsignal", 250.0, 40)
    assert (found.price.step, found.price.value, found.price.age_s) == ("last-good", 60.0, 100)


def test_a_deleted_signal_stays_as_last_good_until_it_is_too_old() -> None:
    signals = chain()
    signals.upsert("de", signal(), NOW)
    signals.delete("de")
    assert signals.zone("DE", NOW + 1).carbon.step is Step.LAST_GOOD
    assert signals.zone("DE", NOW + 7_201).carbon.step is Step.STATIC_ZONE


def test_a_new_list_deletes_what_it_does_not_hold() -> None:
    signals = chain()
    signals.upsert("de", signal(), NOW)
    signals.upsert("fr", signal(zone="FR"), NOW)
    signals.keep_only(["fr"])
    assert signals.zone("DE", NOW).carbon.step is Step.LAST_GOOD
    assert signals.zone("FR", NOW).carbon.step is Step.GRID_SIGNAL


def test_an_object_that_speaks_for_another_zone_no_longer_speaks_for_the_first() -> None:
    signals = chain()
    signals.upsert("grid", signal(zone="DE"), NOW)
    signals.upsert("grid", signal(zone="FR"), NOW)
    assert signals.zone("FR", NOW).carbon.step is Step.GRID_SIGNAL
    assert signals.zone("DE", NOW).carbon.step is Step.LAST_GOOD
    signals.delete("grid")
    assert signals.zone("FR", NOW).carbon.step is Step.LAST_GOOD


def test_a_broken_object_leaves_the_last_good_values() -> None:
    counts = Counts()
    signals = chain(counts)
    signals.upsert("de", signal(), NOW)
    signals.upsert("de", b"{", NOW + 1)
    assert signals.zone("DE", NOW + 2).carbon.step is Step.LAST_GOOD
    assert counts.faults == [("de", GridFault.UNREADABLE)]


def test_an_object_read_long_ago_is_counted_as_stale() -> None:
    counts = Counts()
    signals = chain(counts)
    signals.upsert("de", signal(at=NOW - 4_000), NOW)
    assert counts.faults == [("de", GridFault.STALE)]
    assert signals.zone("DE", NOW).carbon.step is Step.LAST_GOOD


def test_a_forecast_that_ended_is_as_old_as_its_end() -> None:
    signals = chain()
    raw = signal(at=NOW)
    raw["status"]["forecastEnd"] = None
    raw["status"]["forecast"] = []
    raw["status"]["current"]["startedAt"] = format_timestamp(NOW - 86_400)
    signals.upsert("de", raw, NOW)
    assert signals.zone("DE", NOW).carbon.step is Step.STATIC_ZONE


@pytest.mark.parametrize(
    ("zone", "carbon", "price"),
    [
        pytest.param("DE", (Step.STATIC_ZONE, 381.0), (Step.STATIC_ZONE, 80.0), id="known"),
        pytest.param("de", (Step.STATIC_ZONE, 381.0), (Step.STATIC_ZONE, 80.0), id="other-case"),
        pytest.param("DE-BY", (Step.STATIC_ZONE, 381.0), (Step.STATIC_ZONE, 80.0), id="country"),
        pytest.param("XX", (Step.STATIC_DEFAULT, 481.0), (Step.NONE, None), id="not-known"),
        pytest.param("", (Step.STATIC_DEFAULT, 481.0), (Step.NONE, None), id="no-zone"),
        pytest.param(
            "US-TEX-ERCO", (Step.STATIC_DEFAULT, 481.0), (Step.NONE, None), id="no-exchange-rate"
        ),
    ],
)
def test_without_any_object_the_static_table_answers(
    zone: str, carbon: tuple[Step, float], price: tuple[Step, float | None]
) -> None:
    found = chain().zone(zone, NOW)
    assert ((found.carbon.step, found.carbon.value), (found.price.step, found.price.value)) == (
        carbon,
        price,
    )


def test_no_price_is_nan_among_the_means() -> None:
    carbon, price = chain().zone_means(["DE", ""], NOW, 60.0)
    assert carbon == [381.0, 481.0]
    assert price[0] == 80.0
    assert math.isnan(price[1])


def test_prices_are_converted_by_the_given_rates() -> None:
    counts = Counts()
    signals = chain(counts, {"USD": 0.9})
    signals.upsert("us-tex-erco", signal(zone="US-TEX-ERCO", currency="USD", price=50.0), NOW)
    assert signals.zone("US-TEX-ERCO", NOW).price.value == pytest.approx(45.0)
    assert signals.zone_means(["US-TEX-ERCO"], NOW, 60.0)[1] == [pytest.approx(45.0)]
    assert chain(rates={"USD": 0.9}).zone("US-TEX-ERCO", NOW).price.value == pytest.approx(27.0)
    assert counts.faults == []


def test_a_price_without_a_rate_is_no_data_and_counted() -> None:
    counts = Counts()
    signals = chain(counts)
    signals.upsert("de", signal(currency="GBP"), NOW)
    found = signals.zone("DE", NOW)
    assert (found.carbon.step, found.price.step) == (Step.GRID_SIGNAL, Step.STATIC_ZONE)
    assert counts.faults == [("de", GridFault.UNKNOWN_CURRENCY)]


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
def test_an_exchange_rate_that_cannot_be_is_refused(rate: float) -> None:
    with pytest.raises(BadInput, match="USD"):
        Currencies("EUR", {"USD": rate})


def test_every_answer_is_counted_by_its_step() -> None:
    counts = Counts()
    signals = chain(counts)
    signals.upsert("de", signal(price=None), NOW)
    signals.zone_means(["DE", "DE", ""], NOW, 60.0)
    assert counts.steps == {
        ("carbon", Step.GRID_SIGNAL): 2,
        ("carbon", Step.STATIC_DEFAULT): 1,
        ("price", Step.STATIC_ZONE): 2,
        ("price", Step.NONE): 1,
    }


def test_the_mean_covers_the_run_from_now() -> None:
    signals = chain()
    raw = signal(carbon=100.0)
    raw["status"]["forecast"][0]["carbonGramsPerKwh"] = 300.0
    signals.upsert("de", raw, NOW)
    assert signals.zone_means(["DE"], NOW, 3_600.0)[0] == [pytest.approx(200.0)]


def test_a_zone_that_went_long_ago_is_forgotten() -> None:
    signals = chain()
    signals.upsert("de", signal(), NOW)
    signals.delete("de")
    later = NOW + LIMITS.max_stale_s - 1.0
    signals.upsert("fr", signal(zone="FR", at=later), later)
    assert signals.held_zones == {"de", "fr"}, "still good as a last value"
    much_later = NOW + 3 * LIMITS.max_stale_s
    signals.upsert("pl", signal(zone="PL", at=much_later), much_later)
    assert signals.held_zones == {"pl"}


def test_fifty_zones_take_well_under_a_millisecond() -> None:
    signals = chain()
    zones = [f"Z{number}" for number in range(50)]
    for zone in zones:
        signals.upsert(zone.lower(), signal(zone=zone), NOW)
    began = time.process_time()
    for _ in range(20):
        signals.zone_means(zones, NOW, 3_600.0)
    assert (time.process_time() - began) / 20 < 1e-3


@given(st.floats(0, 1_500), st.floats(-500, 4_000), st.floats(0, 1e6), st.floats(0, 1e7))
def test_whatever_the_age_carbon_is_a_number_of_this_world(
    carbon: float, price: float, age_s: float, runtime_s: float
) -> None:
    signals = chain()
    signals.upsert("de", signal(carbon, price), NOW)
    means, _ = signals.zone_means(["DE", "XX"], NOW + age_s, runtime_s)
    assert all(0 <= mean <= 1_500.001 for mean in means)


def test_the_shipped_table_knows_the_world_and_its_sources() -> None:
    zones = load_static_zones()
    assert zones.default.carbon_g_per_kwh == 481.0
    assert all(zone.source for zone in zones.zones.values())
    assert all(zone.currency or zone.price_per_mwh is None for zone in zones.zones.values())
