import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.ledger_records import Amounts, InputAge, What
from greensched_operator.ledger.placements import latest, placed, placement_of
from greensched_operator.objects.placed_pods import PlacedPod

POD: dict[str, Any] = {
    "metadata": {
        "namespace": "ml", "name": "train-x", "uid": "u1",
        "ownerReferences": [
            {"kind": "Other", "name": "no"}, {"kind": "Job", "name": "train", "controller": True},
        ],
    },
    "spec": {
        "nodeName": "dirty",
        "containers": [{"resources": {"requests": {"cpu": "4", "memory": "1Gi"}}}],
    },
    "status": {
        "conditions": [
            {"type": "PodScheduled", "status": "True",
             "lastTransitionTime": "2026-11-21T10:00:00Z"},
        ],
    },
}  # fmt: skip
SCHEDULED_AT = 1_795_255_200.0


def candidate(node: str, carbon_g: float) -> dict[str, Any]:
    return {
        "node": node, "zone": f"zone-of-{node}", "score": 1, "relativeCost": 1.0,
        "powerWatts": 20.0, "runtimeSeconds": 3600.0, "energyJoules": 72_000.0,
        "carbonGrams": carbon_g, "cost": 0.0016, "currency": "EUR",
    }  # fmt: skip


DECISION: dict[str, Any] = {
    "pod": {"uid": "u1"}, "decidedAt": 5.0, "policy": "onnx", "why": "it was the cheapest.",
    "snapshotAgeSeconds": 0.5,
    "zones": [{"zone": "zone-of-dirty", "carbonAgeSeconds": 60.0, "priceAgeSeconds": None}],
    "candidates": [candidate(f"clean-{n}", 1.0) for n in range(50)] + [candidate("dirty", 9.0)],
}  # fmt: skip


def pod(**changes: Any) -> PlacedPod:
    return msgspec.convert({**POD, **changes}, PlacedPod)


def test_a_placement_tells_the_pod_its_node_and_the_decision() -> None:
    record = placed(pod(), DECISION, now=7.0)
    assert record is not None
    assert (record.what, record.at, record.node) == (What.PLACED, SCHEDULED_AT, "dirty")
    assert (record.subject.kind, record.subject.owner) == ("Pod", "Job/train")
    assert (record.subject.cpu_cores, record.subject.memory_bytes) == (4.0, 2.0**30)
    assert (record.policy, record.reason) == ("onnx", "it was the cheapest.")
    assert record.planned == Amounts(72_000.0, 9.0, 0.0016)
    assert record.input_ages == (InputAge("snapshot", 0.5), InputAge("carbon", 60.0))


def test_of_thousands_of_candidates_the_cheapest_and_the_chosen_are_kept() -> None:
    record = placed(pod(), DECISION, now=7.0)
    assert record is not None and record.decision is not None
    told = json.loads(record.decision)
    assert [each["node"] for each in told["candidates"]] == [
        *(f"clean-{n}" for n in range(5)), "dirty",
    ]  # fmt: skip
    assert told["candidatesLeftOut"] == 45


@pytest.mark.parametrize(("conditions", "at"), [
    pytest.param(None, 7.0, id="none"),
    pytest.param([{"type": "PodScheduled", "status": "False"}], 7.0, id="not-yet"),
    pytest.param([{"type": "PodScheduled", "status": "True",
                   "lastTransitionTime": "now"}], 7.0, id="no-time"),
    pytest.param(POD["status"]["conditions"], SCHEDULED_AT, id="told"),
])  # fmt: skip
def test_its_time_is_the_pods_own_where_it_tells_one(
    conditions: list[dict[str, Any]] | None, at: float
) -> None:
    record = placed(pod(status={"conditions": conditions}), None, now=7.0)
    assert record is not None and record.at == at


@pytest.mark.parametrize("changes", [
    pytest.param({"spec": {}}, id="not-bound"),
    pytest.param({"metadata": {"name": "x"}}, id="no-uid"),
])  # fmt: skip
def test_what_is_not_placed_is_no_placement(changes: dict[str, Any]) -> None:
    assert placed(pod(**changes), DECISION, now=7.0) is None


def test_without_a_decision_the_node_is_recorded_all_the_same() -> None:
    record = placed(pod(), None, now=7.0)
    assert record is not None
    assert (record.node, record.decision, record.planned) == ("dirty", None, Amounts())


def test_the_latest_decision_of_all_replicas_on_this_very_pod_counts() -> None:
    earlier, other = {**DECISION, "decidedAt": 4.0}, {**DECISION, "pod": {"uid": "u0"}}
    answers: list[dict[str, Any]] = [
        {"decisions": [earlier, other]},
        {"decisions": [DECISION]},
        {"error": "no"},
    ]
    assert latest(answers, "u1") == DECISION
    assert latest(answers, "u2") is None


async def test_replicas_that_cannot_be_asked_lose_no_placement() -> None:
    async def fails(namespace: str, name: str) -> Sequence[Mapping[str, Any]]:
        raise OSError("away")

    async def answers(namespace: str, name: str) -> Sequence[Mapping[str, Any]]:
        assert (namespace, name) == ("ml", "train-x")
        return [{"decisions": [DECISION]}]

    assert await placement_of(pod(), fails, 7.0) == placed(pod(), None, 7.0)
    assert await placement_of(pod(), answers, 7.0) == placed(pod(), DECISION, 7.0)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(sorted(DECISION)), json_values))
def test_whatever_an_extender_answers_a_placement_is_recorded(told: dict[str, Any]) -> None:
    decision = latest([{"decisions": [told]}], "u1")
    for each in (decision, told):
        record = placed(pod(), each, now=7.0)
        assert record is not None and record.node == "dirty"
