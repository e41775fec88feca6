from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.signals.grid import (
    GridFault,
    GridSlot,
    ZoneForecast,
    object_name,
    parse_grid_signal,
    to_status,
)
from greensched_core.signals.timestamps import parse_timestamp

NOW = parse_timestamp("2026-11-21T10:30:00Z")
TEN, HALF_PAST, ELEVEN, NOON = NOW - 1_800, NOW, NOW + 1_800, NOW + 5_400


def signal(**status: Any) -> dict[str, Any]:
    whole = {
        "observedAt": "2026-11-21T10:00:00.25Z",
        "source": "by-hand",
        "current": {
            "startedAt": "2026-11-21T10:00:00Z",
            "carbonGramsPerKwh": 290,
            "pricePerMwh": 61.2,
            "estimated": True,
        },
        "forecast": [
            {"start": "2026-11-21T11:00:00Z", "carbonGramsPerKwh": 270, "pricePerMwh": 53},
            {"start": "2026-11-21T12:00:00Z", "carbonGramsPerKwh": 258, "pricePerMwh": -2.5},
        ],
        "forecastEnd": "2026-11-21T13:00:00Z",
    }
    return {"spec": {"zone": "DE", "currency": "EUR"}, "status": {**whole, **status}}


def parse(raw: object) -> tuple[ZoneForecast | None, list[GridFault]]:
    forecast, faults = parse_grid_signal(raw, NOW)
    return forecast, [fault.reason for fault in faults]


def slots(*values: tuple[str, object]) -> list[dict[str, object]]:
    return [{"start": f"2026-11-21T{at}:00Z", "carbonGramsPerKwh": carbon} for at, carbon in values]


def test_a_good_signal_is_read_whole() -> None:
    forecast, faults = parse(msgspec.json.encode(signal()))
    assert faults == []
    assert forecast == ZoneForecast(
        zone="DE",
        currency="EUR",
        observed_at=TEN + 0.25,
        source="by-hand",
        current=GridSlot(TEN, 290.0, 61.2),
        forecast=(GridSlot(ELEVEN, 270.0, 53.0), GridSlot(NOON, 258.0, -2.5)),
        forecast_end=NOON + 3_600,
        is_estimated=True,
    )


def test_what_was_written_is_read_back() -> None:
    forecast, _ = parse(signal())
    assert forecast is not None
    assert parse(signal(**to_status(forecast))) == (forecast, [])


def test_carbon_and_price_become_series_with_the_current_value_first() -> None:
    forecast, _ = parse(signal())
    assert forecast is not None
    carbon, price = forecast.carbon(), forecast.price()
    assert carbon is not None
    assert price is not None
    assert (carbon.start, carbon.at(HALF_PAST), carbon.at(ELEVEN)) == (TEN, 290.0, 270.0)
    assert (price.at(NOON), price.end) == (-2.5, NOON + 3_600)


def test_the_current_value_cuts_into_the_slot_it_falls_in() -> None:
    forecast, _ = parse(signal(
        current={"startedAt": "2026-11-21T10:20:00Z", "carbonGramsPerKwh": 500},
        forecast=slots(("10:00", 100), ("11:00", 200)),
    ))  # fmt: skip
    assert forecast is not None
    carbon = forecast.carbon()
    assert carbon is not None
    assert [carbon.at(when) for when in (TEN, HALF_PAST, ELEVEN)] == [100.0, 500.0, 200.0]
    assert forecast.price() is None


@pytest.mark.parametrize(
    ("raw", "reasons"),
    [
        pytest.param(b"{", [GridFault.UNREADABLE], id="broken-json"),
        pytest.param(b"\xff\xfe", [GridFault.UNREADABLE], id="no-text"),
        pytest.param(None, [GridFault.UNREADABLE], id="null"),
        pytest.param([], [GridFault.UNREADABLE], id="a-list"),
        pytest.param({}, [GridFault.NO_ZONE], id="empty"),
        pytest.param({"spec": {"zone": 7}}, [GridFault.NO_ZONE], id="zone-is-a-number"),
        pytest.param({"spec": {"zone": "DE"}}, [GridFault.ABSENT], id="no-status"),
        pytest.param(
            {"spec": {"zone": "DE"}, "status": []}, [GridFault.UNREADABLE, GridFault.ABSENT],
            id="status-is-a-list",
        ),
        pytest.param(
            signal(current=None, forecast=[]), [GridFault.ABSENT], id="no-values",
        ),
        pytest.param(
            signal(current={"carbonGramsPerKwh": None}, forecast=slots(("11:00", None))),
            [GridFault.ABSENT], id="nulls",
        ),
        pytest.param(
            signal(current={"carbonGramsPerKwh": -1}, forecast=[]),
            [GridFault.NEGATIVE_CARBON, GridFault.ABSENT], id="only-negative-carbon",
        ),
        pytest.param(
            signal(current={"carbonGramsPerKwh": 0}, forecast=slots(("11:00", 0.0))),
            [GridFault.ALL_ZERO, GridFault.ABSENT], id="only-zeros",
        ),
        pytest.param(
            signal(observedAt=None, current=None, forecast=slots(("11:00", 9))),
            [GridFault.BAD_TIMESTAMP], id="of-unknown-age",
        ),
    ],
)  # fmt: skip
def test_a_useless_signal_is_none_with_its_reasons(raw: object, reasons: list[GridFault]) -> None:
    assert parse(raw) == (None, reasons)


@pytest.mark.parametrize(
    ("status", "reasons"),
    [
        pytest.param({"observedAt": "yesterday"}, [GridFault.BAD_TIMESTAMP], id="bad-observed-at"),
        pytest.param({"observedAt": 5}, [GridFault.BAD_TIMESTAMP], id="observed-at-is-a-number"),
        pytest.param({"observedAt": "2026-11-21T10:36:00Z"}, [GridFault.FUTURE], id="future"),
        pytest.param({"observedAt": "2026-11-21T10:34:00Z"}, [], id="clocks-a-little-apart"),
        pytest.param({"forecastEnd": "later"}, [GridFault.BAD_TIMESTAMP], id="bad-end"),
        pytest.param({"forecast": "x"}, [GridFault.UNREADABLE], id="forecast-is-text"),
        pytest.param({"forecast": [3]}, [GridFault.UNREADABLE], id="slot-is-a-number"),
        pytest.param({"forecast": [{}]}, [GridFault.BAD_TIMESTAMP], id="slot-without-start"),
        pytest.param(
            {"forecast": slots(("12:00", 1), ("11:00", 2))}, [GridFault.UNSORTED], id="unsorted"
        ),
        pytest.param(
            {"forecast": slots(("11:00", 1), ("11:00", 2))}, [GridFault.DUPLICATE], id="duplicate"
        ),
        pytest.param(
            {"forecast": slots(("11:00", -5), ("12:00", 5))},
            [GridFault.NEGATIVE_CARBON],
            id="negative",
        ),
        pytest.param({"forecast": slots(("11:00", "5"))}, [GridFault.BAD_NUMBER], id="text"),
        pytest.param({"forecast": slots(("11:00", True))}, [GridFault.BAD_NUMBER], id="boolean"),
        pytest.param({"forecast": slots(("11:00", 10_001))}, [GridFault.BAD_NUMBER], id="too-much"),
        pytest.param({"forecast": slots(("11:00", 10**400))}, [GridFault.BAD_NUMBER], id="huge"),
    ],
)
def test_a_signal_with_a_fault_keeps_its_good_parts(
    status: dict[str, Any], reasons: list[GridFault]
) -> None:
    forecast, found = parse(signal(**status))
    assert found == reasons
    assert forecast is not None
    assert forecast.current == GridSlot(TEN, 290.0, 61.2)
    assert forecast.observed_at <= NOW


def test_slots_are_put_in_order_and_the_later_of_two_counts() -> None:
    forecast, _ = parse(signal(forecast=slots(("12:00", 1), ("11:00", 2), ("12:00", 3))))
    assert forecast is not None
    assert [slot.carbon_g_per_kwh for slot in forecast.forecast] == [2.0, 3.0]


def test_missing_carbon_never_becomes_zero() -> None:
    forecast, _ = parse(signal(forecast=slots(("11:00", None), ("12:00", -3))))
    assert forecast is not None
    carbon = forecast.carbon()
    assert carbon is not None
    assert carbon.at(NOON) == 290.0
    assert carbon.is_estimated_at(NOON)


def test_an_object_is_named_after_its_zone() -> None:
    assert object_name("CAISO_NORTH") == "caiso-north"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    | st.sampled_from(["2026-11-21T10:00:00Z", "DE", 250, -5, 0]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(
        st.sampled_from(["spec", "status", "zone", "currency", "observedAt", "source", "current",
                         "startedAt", "carbonGramsPerKwh", "pricePerMwh", "estimated", "forecast",
                         "start", "forecastEnd", "x"]),
        inner, max_size=6,
    ),
    max_leaves=40,
)  # fmt: skip


@given(json_values, json_values)
def test_no_json_makes_it_raise(anything: object, status: object) -> None:
    parse_grid_signal(anything, NOW)
    forecast, faults = parse_grid_signal({"spec": {"zone": "DE"}, "status": status}, NOW)
    if forecast is None:
        assert faults
    else:
        assert forecast.carbon() is not None or forecast.price() is not None


@given(st.binary(max_size=200) | st.text(max_size=200))
def test_no_bytes_make_it_raise(raw: bytes | str) -> None:
    parse_grid_signal(raw, NOW)


def test_deep_nesting_is_a_fault() -> None:
    _, faults = parse_grid_signal(b"[" * 100_000, NOW)
    assert faults[0].reason is GridFault.UNREADABLE
