"""A GreenPolicy is read whole, or tells what is wrong and then holds nothing."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import kopf
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.objects.green_policy import (
    BUILT_IN,
    Budget,
    BudgetPeriod,
    GreenPolicy,
    Mode,
    PauseLimits,
    parse,
)
from greensched_policies.encoding.weights import NO_CARBON_LIMIT, NOT_ABOVE_NOW, Weights
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.rules.catalogue import WHEN_RULES

ROOT = Path(__file__).parents[3]
CRD = ROOT / "deploy/helm/greensched/files/crds/greenpolicies.yaml"


def read(**spec: Any) -> GreenPolicy:
    meta = {"name": "default", "namespace": "team", "generation": 3}
    return parse({"metadata": meta, "spec": spec})


WHOLE = {
    "mode": "enforce",
    "weights": {"cost": 0, "carbon": 2, "performance": 0.5},
    "defaultDelay": "6h",
    "longestHold": "1d12h",
    "defaultRuntime": "90s",
    "onTimeTargetPercent": 99,
    "runtimeErrorPercent": 50,
    "startDelay": "1m",
    "waitForRoom": False,
    "maxHeldSharePercent": 25,
    "leastSavingPercent": 0,
    "carbonLimit": 80,
    "quietHours": [{"from": "22:00", "to": "24:00", "timeZone": "Europe/Berlin", "days": ["Sun"]}],
    "budget": {"period": "Week", "energyKwh": 12.5},
    "pause": {"minimumRun": "1h30m", "minimumPause": "2m"},
    "whenPolicy": "onnx",
    "bundle": {"configMapName": "trained"},
}


def test_every_field_is_read() -> None:
    policy = read(**WHOLE)
    (window,) = policy.quiet_hours.windows
    assert (window.from_minute, window.to_minute, window.days) == (1320, 1440, frozenset({6}))
    assert window.zone.key == "Europe/Berlin"
    assert replace(policy, quiet_hours=BUILT_IN.quiet_hours) == GreenPolicy(
        namespace="team",
        name="default",
        generation=3,
        mode=Mode.ENFORCE,
        weights=Weights(0.0, 2.0, 0.5),
        default_delay_s=21_600.0,
        longest_hold_s=129_600.0,
        default_runtime_s=90.0,
        on_time_target=0.99,
        runtime_error=0.5,
        start_delay_s=60.0,
        waits_for_room=False,
        max_held_share=0.25,
        least_saving=0.0,
        carbon_price_per_g=80e-6,
        budget=Budget(BudgetPeriod.WEEK, energy_kwh=12.5),
        pause=PauseLimits(5400.0, 120.0),
        when_policy=ONNX,
        bundle_config_map="trained",
    )


def test_an_empty_spec_is_what_is_built_in_and_holds_nothing() -> None:
    assert read() == replace(BUILT_IN, namespace="team", name="default", generation=3)
    assert BUILT_IN.mode is Mode.SHADOW
    assert parse({}) == BUILT_IN


@pytest.mark.parametrize(
    ("given", "per_g"),
    [("not-above-now", NOT_ABOVE_NOW), ("none", NO_CARBON_LIMIT), (0, 0.0), (1_000_000, 1.0)],
)
def test_a_carbon_limit_is_a_word_or_a_price_per_tonne(given: object, per_g: float) -> None:
    assert read(carbonLimit=given).carbon_price_per_g == per_g
    assert read().carbon_price_per_g == NOT_ABOVE_NOW


def test_null_is_as_good_as_absent() -> None:
    assert read(**dict.fromkeys(WHOLE)) == read()


def test_json_and_what_kopf_hands_out_are_read_alike() -> None:
    raw: Any = {"metadata": {"name": "x", "namespace": "y"}, "spec": WHOLE}
    assert parse(msgspec.json.encode(raw)) == parse(kopf.Body(raw)) == parse(raw)


def test_a_field_of_a_later_version_is_skipped() -> None:
    assert read(mode="enforce", later={"a": 1}) == read(mode="enforce")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        pytest.param({"mode": "force"}, "none of off, shadow, enforce", id="mode"),
        pytest.param({"mode": False}, "spec.mode: false is not text", id="bare-off-in-yaml"),
        pytest.param({"weights": {"cost": -1}}, "spec.weights.cost", id="negative-weight"),
        pytest.param(
            {"weights": {"cost": 0, "carbon": 0, "performance": 0}}, "all are zero",
            id="weights-all-zero",
        ),
        pytest.param({"longestHold": "tomorrow"}, "'tomorrow' is not a duration", id="duration"),
        pytest.param({"longestHold": "99999d"}, "ten years", id="too-long"),
        pytest.param({"defaultRuntime": "0s"}, "above zero", id="no-runtime"),
        pytest.param({"maxHeldSharePercent": 100.1}, "from 0 to 100", id="above-the-whole"),
        pytest.param({"leastSavingPercent": float("nan")}, "from 0 to 100", id="not-a-number"),
        pytest.param({"carbonLimit": "never"}, "not not-above-now or none", id="limit"),
        pytest.param({"carbonLimit": "80"}, "nor a whole price", id="limit-in-quotes"),
        pytest.param({"carbonLimit": -1}, "from 0 to 1000000", id="negative-price"),
        pytest.param({"carbonLimit": True}, "true is not a whole number", id="limit-is-true"),
        pytest.param({"budget": {"carbonKg": 1}}, "period is missing", id="budget-of-no-period"),
        pytest.param({"budget": {"period": "Day"}}, "energyKwh or carbonKg", id="empty-budget"),
        pytest.param({"budget": {"period": "day", "carbonKg": 1}}, "none of Day", id="period"),
        pytest.param({"whenPolicy": "cheapest"}, "none of onnx, ", id="unknown-rule"),
        pytest.param({"bundle": {}}, "configMapName is missing", id="nameless-bundle"),
        pytest.param({"quietHours": [{"from": "1:00", "to": "02:00"}]}, "quietHours[0].from",
                     id="time"),
        pytest.param({"quietHours": [{"from": "24:00", "to": "02:00"}]}, "24:00 can only end",
                     id="begins-at-the-end"),
        pytest.param({"quietHours": [{"from": "01:00", "to": "01:00"}]}, "the same", id="no-hours"),
        pytest.param({"quietHours": [{"from": "01:00"}]}, "need from and to", id="no-end"),
        pytest.param({"quietHours": [{"from": "00:00", "to": "24:00"}]}, "it is always quiet",
                     id="always"),
        pytest.param(
            {"quietHours": [{"from": "22:00", "to": "08:00", "timeZone": "Asia/Tokyo"},
                            {"from": "23:00", "to": "13:30", "timeZone": "UTC"}]},
            "it is always quiet", id="always-by-two",
        ),
        pytest.param(
            {"quietHours": [{"from": "01:00", "to": "02:00", "timeZone": "Europe/Berln"}]},
            "'Europe/Berln' is not a time zone", id="time-zone",
        ),
        pytest.param(
            {"quietHours": [{"from": "01:00", "to": "02:00", "timeZone": "../etc/passwd"}]},
            "is not a time zone", id="time-zone-as-a-path",
        ),
        pytest.param({"quietHours": [{"from": "01:00", "to": "02:00", "days": ["Mo"]}]},
                     "(close: Mon)", id="day"),
        pytest.param({"quietHours": [{"from": "01:00", "to": "02:00", "days": []}]}, "never begin",
                     id="no-day"),
        pytest.param({"quietHours": [{"from": "01:00", "to": "02:00"}] * 21}, "more than 20",
                     id="too-many-windows"),
    ],
)  # fmt: skip
def test_a_policy_that_cannot_be_followed_tells_why_and_holds_nothing(
    spec: dict[str, Any], told: str
) -> None:
    policy = read(**{"mode": "enforce", "defaultDelay": "6h", **spec})
    (fault,) = policy.faults
    assert told in fault
    assert replace(policy, faults=()) == read()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
specs = st.fixed_dictionaries(
    {}, optional={name: st.just(value) | anything for name, value in WHOLE.items()}
)


@given(anything | st.binary() | st.fixed_dictionaries({"metadata": anything, "spec": specs}))
def test_anything_is_read_as_a_policy_or_as_the_defaults_with_a_fault(raw: object) -> None:
    policy = parse(raw)
    assert any(policy.weights)
    assert min(policy.weights) >= 0.0
    assert 0.0 <= policy.max_held_share <= 1.0
    assert policy.default_runtime_s > 0.0
    if policy.faults:
        assert replace(policy, namespace="", name="", generation=0, faults=()) == BUILT_IN


def test_json_nested_beyond_reason_is_a_fault() -> None:
    assert parse(b"[" * 100_000).faults
    assert parse(b'{"spec": {"weights": {"cost": 1e999}}}').faults


def schema() -> dict[str, Any]:
    definition = yaml.safe_load(CRD.read_text(encoding="utf-8"))
    (version,) = definition["spec"]["versions"]
    spec: dict[str, Any] = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return spec


def defaults(part: dict[str, Any]) -> Any:
    """Return what the API server writes for what is left out."""
    if part.get("default") != {}:
        return part.get("default")
    found = {name: defaults(inner) for name, inner in part["properties"].items()}
    return {name: value for name, value in found.items() if value is not None}


def test_the_definitions_defaults_are_those_of_the_code() -> None:
    written = defaults(schema())
    assert {"mode", "weights", "longestHold", "startDelay", "pause"} <= set(written)
    assert read(**written) == read()


def test_the_definition_knows_every_field_and_every_rule() -> None:
    fields = schema()["properties"]
    assert set(WHOLE) <= set(fields)
    (rule,) = fields["whenPolicy"]["x-kubernetes-validations"]
    for name in (ONNX, *WHEN_RULES):
        assert f"'{name}'" in rule["rule"]
        assert name in rule["message"]
    assert fields["mode"]["enum"] == list(Mode)


@pytest.mark.parametrize(
    ("period", "now", "begin", "end"),
    [
        pytest.param(
            BudgetPeriod.DAY, "2026-03-01T00:00:00Z", "2026-03-01", "2026-03-02", id="day"
        ),
        pytest.param(
            BudgetPeriod.DAY, "2026-02-28T23:59:59Z", "2026-02-28", "2026-03-01", id="day-end"
        ),
        pytest.param(
            BudgetPeriod.WEEK, "2026-03-01T12:00:00Z", "2026-02-23", "2026-03-02", id="sunday"
        ),
        pytest.param(
            BudgetPeriod.WEEK, "2026-03-02T00:00:00Z", "2026-03-02", "2026-03-09", id="monday"
        ),
        pytest.param(
            BudgetPeriod.MONTH, "2026-02-28T12:00:00Z", "2026-02-01", "2026-03-01", id="month"
        ),
        pytest.param(
            BudgetPeriod.MONTH, "2026-12-31T23:59:59Z", "2026-12-01", "2027-01-01", id="december"
        ),
    ],
)
def test_a_budget_begins_anew_by_utc(period: BudgetPeriod, now: str, begin: str, end: str) -> None:
    midnights = (parse_timestamp(f"{day}T00:00:00Z") for day in (begin, end))
    assert period.span(parse_timestamp(now)) == tuple(midnights)
