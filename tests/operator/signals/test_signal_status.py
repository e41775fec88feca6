"""The status from two providers, what a reader makes of it, and back after a restart."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.signals.grid import parse_grid_signal
from greensched_core.signals.steps import SignalKind
from greensched_operator.providers.answers import (
    Answer,
    FaultReason,
    Interval,
    ProviderFault,
    carbon_answer,
    price_answer,
)
from greensched_operator.providers.static import Static
from greensched_operator.providers.tariff import Tariff
from greensched_operator.providers.uk_carbon_intensity import UkCarbonIntensity
from greensched_operator.signals.plan import SignalPlan, answered, failed
from greensched_operator.signals.spec import (
    KINDS,
    GridSignalObject,
    SignalSpec,
    decode_grid_signal,
    parse_spec,
)
from greensched_operator.signals.status import (
    MOST_SLOTS,
    merge_patch,
    next_change,
    restored,
    status_of,
)

NOW, HOUR = 1_768_824_000.0, 3_600.0
UK, TARIFF = UkCarbonIntensity(), Tariff("UTC", 300.0)
SPEC = SignalSpec("de", 4, "DE", "EUR", 900.0, {"carbon": (UK, Static()), "price": (TARIFF,)})
DOWN = ProviderFault(FaultReason.SERVER_ERROR, "HTTP 500")


def carbon(hours: int = 3, first: float = 100.0) -> Answer:
    slots = [Interval(NOW + h * HOUR, NOW + (h + 1) * HOUR, first + h) for h in range(hours)]
    return carbon_answer(slots, "uk/average", is_estimated=True)


def price(quarters: int = 8, since: float = NOW) -> Answer:
    slots = [Interval(since + q * 900, since + (q + 1) * 900, -1.0 * q) for q in range(quarters)]
    return price_answer(slots, "tariff", "GBP")


Plans = dict[SignalKind, SignalPlan]


def plans(of_carbon: Answer | None, of_price: Answer | None) -> Plans:
    made: Plans = {}
    answers: dict[SignalKind, Answer | None] = {"carbon": of_carbon, "price": of_price}
    for kind, answer in answers.items():
        plan = SignalPlan(SPEC.providers[kind], 900.0)
        if answer is not None:
            plan = answered(plan, plan.providers[0], answer, NOW, 0.0)
        made[kind] = plan
    return made


def condition(status: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [each for each in status["conditions"] if each["type"] == name]
    return dict(found)


def test_both_signals_stand_side_by_side_each_with_its_source_and_end() -> None:
    status = status_of(SPEC, plans(carbon(), price()), [], NOW + 1_000)
    parsed, faults = parse_grid_signal(
        {"spec": {"zone": "DE", "currency": "EUR"}, "status": status}, NOW + 1_000
    )
    assert faults == ()
    assert parsed is not None
    assert parsed.current is not None
    assert (parsed.current.carbon_g_per_kwh, parsed.current.price_per_mwh) == (100.0, -1.0)
    of_carbon, of_price = parsed.carbon(), parsed.price()
    assert of_carbon is not None
    assert of_price is not None
    assert (of_carbon.end, of_price.end) == (NOW + 3 * HOUR, NOW + 2 * HOUR)
    assert [of_carbon.at(NOW + h * HOUR + 1_700) for h in range(3)] == [100.0, 101.0, 102.0]
    assert of_price.at(NOW + 1_800) == -2.0
    assert (parsed.carbon_origin.source, parsed.price_origin.source) == ("uk/average", "tariff")
    assert parsed.price_origin.currency == "GBP"
    assert status["source"] == "uk/average + tariff"


@given(
    hours=st.integers(1, 400),
    quarters=st.integers(1, 1500),
    before_s=st.integers(0, 40).map(lambda n: n * 900.0),
    late_s=st.floats(0, 7_000),
)
def test_readers_see_every_value_that_the_providers_gave(
    hours: int, quarters: int, before_s: float, late_s: float
) -> None:
    given_carbon, given_price = carbon(hours), price(quarters, NOW - before_s)
    now = NOW + late_s
    status = status_of(SPEC, plans(given_carbon, given_price), [], now)
    assert 1 <= len(status["forecast"]) <= MOST_SLOTS
    parsed, faults = parse_grid_signal({"spec": {"zone": "DE"}, "status": status}, now)
    assert parsed is not None
    assert faults == ()
    for series, answer in ((parsed.carbon(), given_carbon), (parsed.price(), given_price)):
        slot = answer.at(now)
        if slot is None:
            continue
        assert series is not None
        assert series.at(now) == slot.value
        assert not series.is_estimated_at(now)
        later = answer.at(min(series.end, answer.end) - 1)
        assert later is not None
        assert series.at(min(series.end, answer.end) - 1) == later.value


def test_where_one_signal_ends_a_slot_without_it_starts() -> None:
    long = price_answer([Interval(NOW, NOW + 4 * HOUR, 9.0)], "tariff", "EUR")
    status = status_of(SPEC, plans(carbon(1), long), [], NOW)
    assert status["forecast"] == [
        {"start": "2026-01-19T12:00:00Z", "carbonGramsPerKwh": 100.0, "pricePerMwh": 9.0},
        {"start": "2026-01-19T13:00:00Z", "pricePerMwh": 9.0},
    ]


def test_an_hour_late_the_last_value_is_still_shown_and_then_none() -> None:
    known = plans(carbon(1), None)
    shown = status_of(SPEC, known, [], NOW + 2 * HOUR)
    assert shown["current"]["carbonGramsPerKwh"] == 100.0
    assert "current" not in status_of(SPEC, known, [], NOW + 2 * HOUR + 1)


def test_conditions_say_who_failed_and_what_serves_instead() -> None:
    known = plans(None, price())
    plan = failed(known["carbon"], UK, DOWN, NOW, 0.0)
    known["carbon"] = answered(plan, Static(), carbon(first=481.0), NOW, 0.0)
    status = status_of(SPEC, known, [], NOW)
    fallback = condition(status, "CarbonFallback")
    assert (fallback["status"], fallback["reason"]) == ("True", "ServerError")
    words = "ukCarbonIntensity: server-error: HTTP 500; uk/average is used instead"
    assert fallback["message"] == words
    assert condition(status, "CarbonFresh")["status"] == "True"
    assert condition(status, "PriceFallback")["reason"] == "FirstProviderServes"
    assert status["carbon"]["failures"][0]["provider"] == "ukCarbonIntensity"


def test_values_of_long_ago_are_called_last_good() -> None:
    known = plans(carbon(24), None)
    known["carbon"] = failed(known["carbon"], UK, DOWN, NOW + 900, 0.0)
    status = status_of(SPEC, known, [], NOW + 5_401)
    fresh = condition(status, "CarbonFresh")
    assert (fresh["status"], fresh["reason"]) == ("False", "LastGood")
    assert (
        "the last good values of uk/average are used"
        in condition(status, "CarbonFallback")["message"]
    )


def test_without_any_value_nothing_is_made_up() -> None:
    known = plans(None, None)
    known["carbon"] = failed(known["carbon"], UK, DOWN, NOW, 0.0)
    status = status_of(SPEC, known, [], NOW)
    assert {"current", "forecast", "source", "observedAt"} & status.keys() == set()
    assert condition(status, "CarbonFresh")["reason"] == "NoData"


def test_a_condition_keeps_its_time_and_others_are_left() -> None:
    theirs = {"type": "Checked", "status": "True", "reason": "Ok", "message": ""}
    first = status_of(SPEC, plans(carbon(24), None), [theirs], NOW)
    later = status_of(SPEC, plans(carbon(24), None), first["conditions"], NOW + 60)
    assert later["conditions"] == first["conditions"]
    assert theirs in later["conditions"]


@pytest.mark.parametrize("generation", [4, 5])
def test_a_restart_finds_all_in_the_status_of_the_same_spec_only(generation: int) -> None:
    known = plans(None, price())
    plan = failed(known["carbon"], UK, DOWN, NOW, 0.0)
    known["carbon"] = answered(plan, Static(), carbon(), NOW, 0.0)
    status = status_of(SPEC, known, [], NOW)
    spec = SignalSpec("de", generation, "DE", "EUR", 900.0, SPEC.providers)
    again: Plans = {}
    for kind in KINDS:
        empty = SignalPlan(SPEC.providers[kind], 900.0)
        again[kind] = restored(empty, kind, spec, status, NOW + 10, 0.0)
        assert (again[kind] == empty) == (generation == 5)
        assert (again[kind].next_provider(NOW + 10) is None) == (generation == 4)
    if generation == 4:
        assert again["carbon"].failures == known["carbon"].failures
        assert status_of(spec, again, status["conditions"], NOW + 10) == status


def test_nobody_is_left_unasked_for_longer_than_a_provider_may_ask_for() -> None:
    failed_at = {"place": 0, "reason": "unreachable", "message": "x", "times": 1,
                 "retryAt": "2099-01-01T00:00:00Z"}  # fmt: skip
    status = {"observedGeneration": 4, "carbon": {"failures": [failed_at]}}
    plan = SignalPlan((SPEC.providers["carbon"][0],), 900.0)
    assert restored(plan, "carbon", SPEC, status, NOW, 0.0).due_at(NOW) == NOW + 6 * 3600


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=8,
)


@given(part=JSON, failures=JSON, forecast=JSON)
def test_a_status_of_another_hand_never_surprises(part: Any, failures: Any, forecast: Any) -> None:
    whole = {"place": 0, "observedAt": "2026-01-19T12:00:00Z", "failures": failures}
    plan = SignalPlan(SPEC.providers["carbon"], 900.0)
    for carbon_part in (part, whole, {**whole, "failures": [whole, part]}):
        status = {"observedGeneration": 4, "carbon": carbon_part, "forecast": forecast}
        again = restored(plan, "carbon", SPEC, status, NOW, 0.0)
        assert again.providers == plan.providers


def applied(target: Any, patch: Any) -> Any:
    """Return what an API server makes of a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = applied(merged.get(name), value)
    return merged


NO_NULLS = st.recursive(
    st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), NO_NULLS)


@given(old=OBJECTS, new=OBJECTS)
def test_a_merge_patch_leads_from_the_one_to_the_other(old: Any, new: Any) -> None:
    patch = merge_patch(old, new)
    assert applied(old, patch) == new
    assert (patch == {}) == (old == new)


def test_the_next_change_is_the_next_slot() -> None:
    assert next_change(plans(carbon(), price()), NOW + 10) == NOW + 900
    assert next_change(plans(carbon(), None), NOW + 10) == NOW + HOUR
    assert next_change(plans(None, None), NOW) == float("inf")


@pytest.mark.parametrize(
    ("spec", "ours", "interval_s"),
    [
        pytest.param({"zone": "DE"}, False, 900.0, id="no-provider"),
        pytest.param({"zone": "DE", "carbon": []}, False, 900.0, id="empty-list"),
        pytest.param({"zone": "DE", "carbon": [{"static": {}}]}, True, 900.0, id="one"),
        pytest.param({"zone": "DE", "price": [{"x": {}}]}, True, 900.0, id="unknown-is-told"),
        pytest.param({"zone": "DE", "pollInterval": "5m"}, False, 300.0, id="interval"),
        pytest.param({"zone": "DE", "pollInterval": "soon"}, False, 900.0, id="odd-interval"),
    ],
)
def test_a_signal_that_names_providers_is_ours(
    spec: dict[str, Any], ours: bool, interval_s: float
) -> None:
    raw = msgspec.json.encode({"metadata": {"name": "de", "generation": 1}, "spec": spec})
    item: GridSignalObject = decode_grid_signal(raw)
    parsed = parse_spec(item)
    assert (parsed.is_ours, parsed.interval_s) == (ours, interval_s)
