"""Carbon from one source and price from another: each with its own age, end and currency."""

from typing import Any

import pytest

from greensched_core.signals.chain import GridSignals
from greensched_core.signals.currencies import Currencies
from greensched_core.signals.grid import (
    GridFault,
    GridSlot,
    SignalOrigin,
    ZoneForecast,
    parse_grid_signal,
    to_status,
)
from greensched_core.signals.static import parse_static_zones
from greensched_core.signals.steps import AgeLimits, Step

NOW = 1_795_255_200.0
HOUR = 3_600.0
CARBON = SignalOrigin("wattime", NOW, end=NOW + 2 * HOUR, is_estimated=True)
PRICE = SignalOrigin("entsoe", NOW - 2 * HOUR, end=NOW + 3 * HOUR, currency="USD")


def forecast(
    carbon: SignalOrigin | None = CARBON, price: SignalOrigin | None = PRICE
) -> ZoneForecast:
    return ZoneForecast(
        zone="DE",
        currency="EUR",
        observed_at=NOW - 2 * HOUR,
        source="both",
        current=GridSlot(NOW, 300.0, 60.0),
        forecast=(
            GridSlot(NOW + HOUR, 200.0, 70.0),
            GridSlot(NOW + 2 * HOUR, None, 80.0),
        ),
        forecast_end=NOW + 3 * HOUR,
        own_carbon_origin=carbon,
        own_price_origin=price,
    )


def wire(said: ZoneForecast) -> dict[str, Any]:
    return {"spec": {"zone": said.zone, "currency": said.currency}, "status": to_status(said)}


@pytest.mark.parametrize(
    ("carbon", "price"),
    [
        pytest.param(CARBON, PRICE, id="both"),
        pytest.param(CARBON, None, id="only-carbon"),
        pytest.param(None, PRICE, id="only-price"),
    ],
)
def test_own_origins_are_read_back(carbon: SignalOrigin | None, price: SignalOrigin | None) -> None:
    said = forecast(carbon, price)
    assert parse_grid_signal(wire(said), NOW) == (said, ())


def test_each_signal_ages_by_its_own_time_and_source() -> None:
    signals = GridSignals(
        parse_static_zones("[default]\ncarbon_grams_per_kwh = 1", "a test"),
        currencies=Currencies("EUR", {"USD": 0.5}),
        limits=AgeLimits(fresh_s=HOUR, max_stale_s=24 * HOUR),
    )
    faults = signals.upsert("de", wire(forecast()), NOW)
    found = signals.zone("DE", NOW + 60)
    assert [fault.reason for fault in faults] == [GridFault.STALE]
    assert (found.carbon.step, found.carbon.age_s) == (Step.GRID_SIGNAL, 60.0)
    assert (found.carbon.source, found.carbon.is_estimated) == ("wattime", True)
    assert (found.price.step, found.price.age_s) == (Step.LAST_GOOD, 2 * HOUR + 60)
    assert (found.price.source, found.price.is_estimated) == ("entsoe", False)
    assert found.price.value == 30.0, "half a euro a dollar"


def test_a_signal_ends_where_its_own_source_does() -> None:
    carbon, price = forecast().carbon(), forecast().price()
    assert carbon is not None
    assert price is not None
    assert (carbon.end, price.end) == (NOW + 2 * HOUR, NOW + 3 * HOUR)
    assert carbon.is_estimated_at(NOW + 2 * HOUR)
    assert not price.is_estimated_at(NOW + 2 * HOUR)


def test_an_origin_ahead_of_our_clock_counts_as_read_when_received() -> None:
    ahead = forecast(carbon=SignalOrigin("x", NOW + HOUR))
    parsed, faults = parse_grid_signal(wire(ahead), NOW)
    assert [fault.reason for fault in faults] == [GridFault.FUTURE]
    assert parsed is not None
    assert parsed.carbon_origin.observed_at == NOW
