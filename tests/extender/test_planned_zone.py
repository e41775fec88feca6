"""The zone in which held work was planned is preferred, unless another is much better now."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from greensched_core import labels
from greensched_core.declarations import OwnerObject
from greensched_core.signals.timestamps import format_timestamp
from greensched_core.testing import make_node
from greensched_extender.green_policies import decode_policy

World = Any
MakePod = Callable[..., dict[str, Any]]


def decision(world: World, zone: str = "DE", **changes: Any) -> str:
    """The operator's annotation for a run of an hour that begins now."""
    told = {
        "zone": zone,
        "start": format_timestamp(world.clock.now()),
        "runtimeSeconds": 3600.0,
        "carbonGramsPerKwh": [400.0, 500.0],
        "pricePerMwh": [80.0, None],
    }
    return json.dumps(told | changes)


def placed(world: World, pod: MakePod, text: str, name: str = "p1") -> dict[str, Any]:
    """Score a pod with that annotation on all nodes; return its decision as it is told."""
    names = [name for name in ("de", "fr", "pl") if world.snapshot.report(name)]
    world.scores(*names, pod=pod(name, annotations={labels.DECISION: text}))
    (told,) = world.explanations().decisions("default", name)[:1]
    return dict(told)


def weigh(world: World, weights: dict[str, float]) -> None:
    """Make these weights the cluster's."""
    meta = {"name": "default", "namespace": "system"}
    raw = json.dumps({"metadata": meta, "spec": {"weights": weights}}).encode()
    world.known.policies.upsert(decode_policy(raw))


def three_zones(world: World) -> None:
    """DE 400, FR 380, PL 700 g/kWh; only carbon counts."""
    world.add(*(make_node(zone.lower(), zone=zone) for zone in ("DE", "FR", "PL")))
    world.carbon.update(DE=400.0, FR=380.0, PL=700.0)
    weigh(world, {"cost": 0, "carbon": 1, "performance": 0})


@pytest.mark.parametrize(
    ("now", "expected", "outcome"),
    [
        pytest.param({}, "de", "honoured", id="as-planned-though-another-is-cleaner"),
        pytest.param({"DE": 415.0}, "de", "honoured", id="less-than-a-tenth-dirtier"),
        pytest.param({"DE": 430.0}, "fr", "better_elsewhere", id="more-than-a-tenth-dirtier"),
        pytest.param({"FR": 367.0}, "de", "honoured", id="less-than-a-tenth-cleaner-elsewhere"),
        pytest.param(
            {"FR": 350.0}, "fr", "better_elsewhere", id="more-than-a-tenth-cleaner-elsewhere"
        ),
        pytest.param({"DE": 90.0, "FR": 89.0}, "de", "honoured", id="cleaner-than-planned"),
        pytest.param({"DE": None}, "fr", "no_signal", id="no-data-of-the-zone"),
    ],
)
def test_the_planned_zone_is_honoured_unless_another_is_better_by_a_tenth(
    world: World, pod: MakePod, now: dict[str, float | None], expected: str, outcome: str
) -> None:
    three_zones(world)
    world.carbon.update(now)
    told = placed(world, pod, decision(world))
    assert (told["expectedNode"], told["plannedZone"]) == (
        expected,
        {"zone": "DE", "outcome": outcome},
    )
    best = max(told["candidates"], key=lambda each: each["score"])
    assert (best["node"], best["score"]) == (expected, 10)
    assert world.counted("planned_zones_total", outcome=outcome) == 1
    if outcome == "honoured":
        assert told["why"].endswith("; its start was planned in DE.")


def test_within_the_zone_and_outside_of_it_cheaper_nodes_still_score_better(
    world: World, pod: MakePod
) -> None:
    three_zones(world)
    fast, slow = make_node("de-fast", zone="DE"), make_node("de-slow", zone="DE")
    world.add(replace(fast, speed=2.0), replace(slow, speed=0.2))
    names = ["de", "de-fast", "de-slow", "fr", "pl"]
    scores = world.scores(*names, pod=pod(annotations={labels.DECISION: decision(world)}))
    assert scores["de-fast"] == 10
    assert scores["fr"] < 10 and scores["fr"] > scores["pl"]
    assert scores["de-fast"] > scores["de"] > scores["de-slow"]


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        pytest.param({"zone": "SE"}, "not_offered", id="a-zone-without-nodes"),
        pytest.param({"start": "2020-01-01T00:00:00Z"}, "other_time", id="long-over"),
        pytest.param({"start": "2100-01-01T00:00:00Z"}, "other_time", id="far-ahead"),
        pytest.param({"start": "soon"}, "unreadable", id="no-time"),
        pytest.param({"runtimeSeconds": -1}, "unreadable", id="a-negative-runtime"),
        pytest.param({"runtimeSeconds": "1h"}, "unreadable", id="a-text-for-a-number"),
        pytest.param({"zone": "Z" * 64}, "unreadable", id="no-zone-s-name"),
        pytest.param({"zone": ""}, None, id="no-zone-was-planned"),
        pytest.param({"start": None}, None, id="written-by-0.1"),
    ],
)
def test_a_plan_that_cannot_be_used_is_ignored_and_counted(
    world: World, pod: MakePod, changes: dict[str, Any], outcome: str | None
) -> None:
    three_zones(world)
    told = placed(world, pod, decision(world, **changes))
    assert told["expectedNode"] == "fr"
    if outcome is not None:
        assert world.counted("planned_zones_total", outcome=outcome) == 1
    shown = told["plannedZone"]
    assert (shown and shown["outcome"]) == (None if outcome == "unreadable" else outcome)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"DE"', '{"zone": 3}', '"' + "x" * 5000])
def test_a_decision_that_is_no_json_of_ours_changes_nothing(
    world: World, pod: MakePod, text: str
) -> None:
    three_zones(world)
    assert placed(world, pod, text)["expectedNode"] == "fr"
    assert world.counted("planned_zones_total", outcome="unreadable") == 1


def test_a_run_may_begin_a_slot_early_and_its_last_pods_until_it_would_have_ended(
    world: World, pod: MakePod
) -> None:
    three_zones(world)
    text, outcomes = decision(world), []
    for number, wait_s in enumerate((0.0, 3600.0, 1.0)):
        world.clock.advance(wait_s)
        outcomes.append(placed(world, pod, text, f"p{number}")["plannedZone"]["outcome"])
    early = decision(world, start=format_timestamp(world.clock.now() + 900.0))
    outcomes.append(placed(world, pod, early, "early")["plannedZone"]["outcome"])
    assert outcomes == ["honoured", "honoured", "other_time", "honoured"]


def test_the_plan_is_found_through_the_pods_job_and_gives_the_runtime(
    world: World, pod: MakePod
) -> None:
    three_zones(world)
    meta = {"uid": "j", "annotations": {labels.DECISION: decision(world, runtimeSeconds=7200.0)}}
    world.known.declarations.jobs.upsert(msgspec.convert({"metadata": meta}, OwnerObject))
    of_job = pod()
    of_job["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": "j", "controller": True}]
    world.scores("de", "fr", pod=of_job)
    (told,) = world.explanations().decisions("default", "p1")
    assert told["expectedNode"] == "de"
    assert (told["pod"]["runtimeSeconds"], told["pod"]["runtimeIsDefault"]) == (7200.0, False)


def test_a_runtime_that_the_pod_declares_counts_before_the_plans(
    world: World, pod: MakePod
) -> None:
    three_zones(world)
    own = {labels.DECISION: decision(world), labels.RUNTIME: "10m"}
    world.scores("de", "fr", pod=pod(annotations=own))
    (told,) = world.explanations().decisions("default", "p1")
    assert told["pod"]["runtimeSeconds"] == 600.0


def test_a_price_that_no_signal_tells_does_not_count(world: World, pod: MakePod) -> None:
    three_zones(world)
    weigh(world, {"cost": 1, "carbon": 1, "performance": 0})
    world.price.update(DE=None, FR=None, PL=None)
    assert placed(world, pod, decision(world))["plannedZone"]["outcome"] == "honoured"


def test_a_negative_price_in_the_planned_zone_is_honoured(world: World, pod: MakePod) -> None:
    three_zones(world)
    weigh(world, {"cost": 1, "carbon": 0, "performance": 0})
    world.price.update(DE=-48.0, FR=-50.0, PL=90.0)
    assert placed(world, pod, decision(world))["expectedNode"] == "de"
    world.clock.advance(1.0)  # the grid is read once a second
    world.price.update(DE=40.0)
    told = placed(world, pod, decision(world), "later")
    assert (told["expectedNode"], told["plannedZone"]["outcome"]) == ("fr", "better_elsewhere")


def test_pods_without_a_plan_are_scored_as_before(world: World, pod: MakePod) -> None:
    three_zones(world)
    world.scores("de", "fr", "pl")
    (told,) = world.explanations().decisions("default", "p1")
    assert (told["expectedNode"], told["plannedZone"]) == ("fr", None)


def test_the_risk_of_ending_late_is_told_for_each_node(world: World, pod: MakePod) -> None:
    """A run of an hour has an hour and a half; on a node of half the speed it has too little."""
    three_zones(world)
    world.add(replace(make_node("slow", zone="DE"), speed=0.5))
    text = decision(
        world,
        deadline=format_timestamp(world.clock.now() + 5400.0),
        runtimeError=0.2,
        onTimeTarget=0.98,
    )
    world.scores("de", "slow", pod=pod("p1", annotations={labels.DECISION: text}))
    (told,) = world.explanations().decisions("default", "p1")[:1]
    shares = {each["node"]: each["lateShare"] for each in told["candidates"]}
    # ln(1.5) / 0.2 = 2.03 standard deviations, and ln(0.75) / 0.2 = -1.44
    assert shares == {"de": pytest.approx(0.0213, abs=1e-4), "slow": pytest.approx(0.925, abs=1e-3)}
    assert told["deadline"] == world.clock.now() + 5400.0
    assert told["onTimeTargetShare"] == 0.98


def test_the_risk_of_resumed_work_is_that_of_what_is_left_of_it(world: World, pod: MakePod) -> None:
    """Its pods name four hours, the runtime of the whole; one is left, and two until the end."""
    three_zones(world)
    text = decision(world, deadline=format_timestamp(world.clock.now() + 7200.0), runtimeError=0.3)
    own = {labels.DECISION: text, labels.RUNTIME: "4h"}
    world.scores("de", pod=pod("p1", annotations=own))
    (told,) = world.explanations().decisions("default", "p1")[:1]
    # ln(2) / 0.3 = 2.31 standard deviations
    assert told["candidates"][0]["lateShare"] == pytest.approx(0.0104, abs=1e-4)


def test_without_a_deadline_no_risk_is_told(world: World, pod: MakePod) -> None:
    three_zones(world)
    told = placed(world, pod, decision(world))
    assert (told["deadline"], told["onTimeTargetShare"]) == (None, None)
    assert {each["lateShare"] for each in told["candidates"]} == {None}
