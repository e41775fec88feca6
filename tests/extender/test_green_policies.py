"""Each pod is scored by the weights of the GreenPolicy that it follows."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from greensched_core import labels
from greensched_core.declarations import OwnerObject
from greensched_core.testing import make_node
from greensched_extender.green_policies import SETTINGS, GreenPolicies, decode_policy
from greensched_extender.metrics import Fallback, PolicyFault
from greensched_operator.objects.green_policy import parse
from greensched_policies.encoding.weights import Weights
from greensched_policies.learned.model_fields import ONNX

World = Any
MakePod = Callable[..., dict[str, Any]]
NewWorld = Callable[..., World]

CHEAP, CLEAN = {"cost": 1, "carbon": 0, "performance": 0}, {"cost": 0, "carbon": 1}
OF_SETTINGS = Weights(3.0, 2.0, 1.0)


def policy(place: str, spec: object) -> bytes:
    namespace, name = place.split("/")
    return json.dumps({"metadata": {"namespace": namespace, "name": name}, "spec": spec}).encode()


def policies_of(*listed: bytes) -> tuple[GreenPolicies, list[PolicyFault]]:
    faults: list[PolicyFault] = []
    policies = GreenPolicies(OF_SETTINGS, "system", faults.append)
    policies.list_began()
    for raw in listed:
        policies.upsert(decode_policy(raw))
    policies.list_ended()
    return policies, faults


def put(world: World, place: str, spec: object) -> None:
    world.known.policies.upsert(decode_policy(policy(place, spec)))


def latest(world: World, name: str = "p1") -> dict[str, Any]:
    told: dict[str, Any] = world.explanations().decisions("default", name)[0]
    return told


def two_grids(world: World) -> None:
    """One node in a cheap dirty zone, one in a clean dear zone."""
    world.carbon.update(DE=500.0, FR=50.0)
    world.price.update(DE=10.0, FR=100.0)
    world.add(make_node("cheap", zone="DE"), make_node("clean", zone="FR"))


@pytest.mark.parametrize(
    ("place", "asked", "best", "source"),
    [
        pytest.param("default/mine", "mine", "clean", "default/mine", id="named"),
        pytest.param("system/mine", "mine", "clean", "system/mine", id="named-of-the-operator"),
        pytest.param("default/default", "", "clean", "default/default", id="of-the-namespace"),
        pytest.param("system/default", "", "clean", "system/default", id="of-the-cluster"),
        pytest.param("other/default", "", "cheap", "", id="of-another-namespace"),
    ],
)
def test_the_weights_of_the_policy_that_applies_decide(
    new_world: NewWorld, pod: MakePod, place: str, asked: str, best: str, source: str
) -> None:
    world = new_world(weights=Weights(1.0, 0.0, 0.0))
    two_grids(world)
    put(world, place, {"weights": CLEAN, "mode": "off"})
    scores = world.scores("cheap", "clean", pod=pod(annotations={labels.POLICY: asked}))
    assert max(scores, key=scores.__getitem__) == best
    told = latest(world)
    assert told["weightsFrom"] == (f"GreenPolicy {source}" if source else SETTINGS)
    assert told["weights"]["carbon"] == (1.0 if source else 0.0)


def test_a_decision_keeps_its_weights_when_the_policy_changes(world: World) -> None:
    two_grids(world)
    put(world, "default/default", {"weights": CHEAP})
    world.scores("cheap", "clean")
    put(world, "default/default", {"weights": CLEAN})
    assert latest(world)["weights"] == {"cost": 1.0, "carbon": 0.0, "performance": 0.0}


@pytest.mark.parametrize("kind", ["jobs", "cron_jobs"])
def test_a_policy_that_a_job_or_its_cronjob_names_is_that_of_its_pods(
    world: World, pod: MakePod, kind: str
) -> None:
    two_grids(world)
    put(world, "default/nightly", {"weights": CLEAN})
    maker = {"kind": "CronJob", "uid": "c", "controller": True}
    named = {"uid": "j", "annotations": {labels.POLICY: "nightly"}}
    if kind == "cron_jobs":
        own = {"metadata": {**named, "uid": "c"}}
        world.known.declarations.cron_jobs.upsert(msgspec.convert(own, OwnerObject))
        named = {"uid": "j"}
    job = {"metadata": {**named, "ownerReferences": [maker]}}
    world.known.declarations.jobs.upsert(msgspec.convert(job, OwnerObject))
    of_job = pod()
    of_job["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": "j", "controller": True}]
    world.scores("cheap", "clean", pod=of_job)
    assert latest(world)["weightsFrom"] == "GreenPolicy default/nightly"


def test_without_a_list_of_policies_the_settings_count_and_that_is_counted(
    new_world: NewWorld,
) -> None:
    world = new_world(policies_are_listed=False)
    two_grids(world)
    put(world, "default/default", {"weights": CLEAN})
    world.scores("cheap", "clean")
    assert latest(world)["weightsFrom"] == SETTINGS
    assert world.fallbacks("no_policies") == 1


def test_a_pod_that_names_no_existing_policy_follows_the_next_and_that_is_counted(
    world: World, pod: MakePod
) -> None:
    two_grids(world)
    put(world, "system/default", {"weights": CLEAN})
    world.scores("cheap", "clean", pod=pod(annotations={labels.POLICY: "nightli"}))
    assert latest(world)["weightsFrom"] == "GreenPolicy system/default"
    assert world.fallbacks("unknown_policy") == 1


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        pytest.param([], "spec", id="spec-is-a-list"),
        pytest.param("much", "spec", id="spec-is-a-text"),
        pytest.param({"weights": 3}, "weights", id="weights-are-a-number"),
        pytest.param({"weights": {"cost": -1}}, "weights", id="a-negative-weight"),
        pytest.param({"weights": {"cost": "1"}}, "weights", id="a-text"),
        pytest.param({"weights": {"cost": 1e7}}, "weights", id="too-large"),
        pytest.param({"weights": {"cost": True}}, "weights", id="a-boolean"),
        pytest.param(
            {"weights": {"cost": 0, "carbon": 0, "performance": 0}}, "weights", id="all-zero"
        ),
    ],
)
def test_a_malformed_policy_is_counted_and_its_last_good_version_counts(
    spec: object, part: str
) -> None:
    good = policy("team/default", {"weights": CLEAN})
    policies, faults = policies_of(good, policy("new/default", spec))
    never_good, was_good = policies.of("new", None), policies.of("team", None)
    assert never_good.by == policies.of_settings, "it is not skipped: no other policy applies"
    assert (was_good.by.weights, was_good.fallback) == (Weights(0.0, 1.0, 0.1), None)
    assert never_good.fallback == Fallback.UNREADABLE_POLICY
    policies.upsert(decode_policy(policy("team/default", spec)))
    policies.upsert(decode_policy(policy("team/default", spec)))
    kept = policies.of("team", None)
    assert kept.by.weights == was_good.by.weights
    assert kept.by.source == "the last good version of GreenPolicy team/default"
    assert faults == [PolicyFault(part)] * 2, "a version is counted once"
    assert len(policies.faults()) == 2
    policies.upsert(decode_policy(good))
    assert policies.of("team", None) == was_good
    assert len(policies.faults()) == 1


@pytest.mark.parametrize("how", ["deleted", "not-listed"])
def test_a_policy_that_is_gone_applies_no_more(how: str) -> None:
    mine, theirs = policy("team/default", {}), policy("other/default", {})
    policies, _ = policies_of(mine, theirs)
    if how == "deleted":
        policies.remove(decode_policy(mine))
    else:
        policies.list_began()
        policies.upsert(decode_policy(theirs))
        policies.list_ended()
    assert policies.of("team", None).by.source == SETTINGS
    assert policies.of("other", None).by.source == "GreenPolicy other/default"


@pytest.mark.parametrize(
    "spec", [None, {}, {"weights": None}, {"weights": {}}, {"weights": {"carbon": 5}}]
)
def test_extender_and_operator_read_the_same_weights(spec: object) -> None:
    raw = policy("team/default", spec)
    policies, faults = policies_of(raw)
    assert policies.of("team", None).by.weights == parse(raw).weights
    assert not faults


@pytest.mark.parametrize(
    ("spec", "bundle"),
    [
        pytest.param({"whenPolicy": ONNX, "bundle": {"configMapName": "mine"}}, "mine", id="named"),
        pytest.param({"whenPolicy": ONNX}, "", id="the-shipped-one"),
        pytest.param({"whenPolicy": ONNX, "bundle": None}, "", id="null"),
        pytest.param({"whenPolicy": ONNX, "bundle": {}}, "", id="without-a-name"),
        pytest.param({"whenPolicy": ONNX, "bundle": {"configMapName": ""}}, "", id="empty"),
        pytest.param({"whenPolicy": ONNX, "bundle": {"configMapName": 3}}, "", id="a-number"),
        pytest.param({"whenPolicy": ONNX, "bundle": ["mine"]}, "", id="a-list"),
        pytest.param({"whenPolicy": 3, "bundle": {"configMapName": "mine"}}, "", id="no-rule"),
    ],
)
def test_extender_and_operator_read_the_same_bundle(spec: object, bundle: str) -> None:
    raw = policy("team/default", spec)
    policies, faults = policies_of(raw)
    assert policies.of("team", None).by.bundle == (parse(raw).bundle_config_map or "") == bundle
    assert not faults, "the weights count all the same"


def test_the_bundle_of_a_rule_is_not_read() -> None:
    spec = {"whenPolicy": "run-now", "bundle": {"configMapName": "mine"}}
    policies, _ = policies_of(policy("team/default", spec))
    assert policies.of("team", None).by.bundle == ""
