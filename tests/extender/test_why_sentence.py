from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_core.testing import make_node
from greensched_extender.why import why

World = Any
WEIGHTS = {"cost": 1.0, "carbon": 1.0, "performance": 0.1}


def candidate(
    node: str,
    relative: float | None,
    wh: float,
    carbon: float | None,
    price: float | None,
    score: int,
) -> dict[str, Any]:
    """A node whose grid emits `carbon` g/kWh and costs `price` per MWh."""
    return {
        "node": node, "zone": "Z", "score": score, "relativeCost": relative, "powerWatts": wh,
        "runtimeSeconds": 3600.0, "energyJoules": wh * 3600.0,
        "carbonGrams": None if carbon is None else wh / 1e3 * carbon,
        "cost": None if price is None else wh / 1e6 * price,
        "currency": "EUR",
    }  # fmt: skip


def told(
    *candidates: dict[str, Any],
    node: str | None = "a",
    policy: str = "onnx",
    state: str = "bound",
    cpu_cores: float | None = 4.0,
) -> str:
    outcome = {"state": state, "node": node} if node else {"state": "not seen bound"}
    return why(
        {
            "pod": {"cpuCores": cpu_cores, "gpus": 0.0},
            "candidates": candidates, "outcome": outcome, "weights": WEIGHTS, "policy": policy,
            "expectedNode": candidates[0]["node"] if candidates else None,
        }
    )  # fmt: skip


@pytest.mark.parametrize(("sentence", "expected"), [
    pytest.param(
        told(candidate("a", 0.3, 20, 30, 80, 10), candidate("b", 1.7, 20, 570, 80, 0)),
        "a was the cheapest of 2: 70 % less than the average node, "
        "mostly carbon (30 against 300 g/kWh).",
        id="a-clean-grid",
    ),
    pytest.param(
        told(candidate("a", 0.5, 10, 300, 80, 10), candidate("b", 1.5, 30, 300, 80, 0)),
        "a was the cheapest of 2: 50 % less than the average node, "
        "mostly energy (10 against 20 Wh).",
        id="a-better-machine",
    ),
    pytest.param(
        told(candidate("a", 0.75, 20, None, 40, 10), candidate("b", 1.25, 20, None, 120, 0)),
        "a was the cheapest of 2: 25 % less than the average node, "
        "mostly price (40 against 80 EUR/MWh).",
        id="carbon-is-not-known",
    ),
    pytest.param(
        told(candidate("a", 0.9, 20, 300, -40, 10), candidate("b", 1.1, 20, 300, 120, 0)),
        "a was the cheapest of 2: 10 % less than the average node, "
        "mostly price (-40 against 40 EUR/MWh).",
        id="a-negative-price",
    ),
    pytest.param(
        told(candidate("a", 0.5, 20, 30, 80, 10), candidate("b", 1.5, 20, 90, 80, 0), node="b"),
        "b was number 2 by cost of 2: 50 % more than the average node, "
        "mostly carbon (90 against 60 g/kWh); kube-scheduler's own scores preferred it.",
        id="the-scheduler-chose-another",
    ),
    pytest.param(
        told(candidate("a", 1.0, 20, 30, 80, 10), candidate("b", 1.005, 20, 30, 80, 10)),
        "a was one of 2 nodes that cost the same within 1 %.",
        id="all-alike",
    ),
    pytest.param(
        told(candidate("a", 0.5, 20, 30, 80, 10), candidate("b", 1.5, 20, 90, 80, 0),
             policy="bin-pack"),
        "a was preferred most by bin-pack of 2.",
        id="a-rule-that-weighs-something-else",
    ),
    pytest.param(
        told(candidate("a", 0.5, 10, 30, 80, 10), candidate("b", 1.5, 30, 90, 80, 0),
             policy="least-energy"),
        "a was the cheapest of 2: 50 % less than the average node, by its energy "
        "(10 against 20 Wh).",
        id="a-rule-that-weighs-energy",
    ),
    pytest.param(
        told(candidate("a", 0.5, 20, 30, 80, 10), candidate("b", 1.5, 20, 90, 80, 0), node=None),
        "a was the cheapest of 2: 50 % less than the average node, "
        "mostly carbon (30 against 60 g/kWh).",
        id="not-seen-bound",
    ),
    pytest.param(
        told(candidate("a", 0.5, 20, 30, 80, 10), candidate("b", 1.5, 20, 90, 80, 0), node="b",
             state="answered too late"),
        "b was number 2 by cost of 2: 50 % more than the average node, mostly carbon "
        "(90 against 60 g/kWh); the answer came too late, so kube-scheduler's own scores decided "
        "alone.",
        id="the-answer-came-too-late",
    ),
    pytest.param(
        told(candidate("a", 0.5, 1e-5, 300, 80, 10), candidate("b", 1.5, 3e-5, 300, 80, 0)),
        "a was the cheapest of 2: 50 % less than the average node, "
        "mostly energy (10 against 20 µWh).",
        id="a-run-of-an-instant",
    ),
    pytest.param(
        told(candidate("a", 1.0, 0, 30, 80, 10), candidate("b", 1.0, 0, 30, 80, 10), cpu_cores=0.0),
        "The pod requests neither CPU nor GPU, so it counts as 0 W on each node and all are "
        "equally cheap: set resources.requests for its containers.",
        id="a-pod-that-requests-nothing",
    ),
    pytest.param(
        told(candidate("a", 0.5, 20, 30, 80, 10), candidate("b", 1.5, 40, 30, 80, 0),
             cpu_cores=None, policy="weighted-cost"),
        "a was the cheapest of 2: 50 % less than the average node, "
        "mostly energy (20 against 30 Wh).",
        id="a-pod-that-requests-nothing-and-wakes-a-node",
    ),
    pytest.param(
        told(candidate("a", 0.5, 40, 900, 80, 10), candidate("b", 1.5, 20, 30, 80, 0),
             policy="spread"),
        "a was preferred most by spread of 2.",
        id="a-rule-that-does-not-price",
    ),
    pytest.param(
        told(candidate("a", 0.5, 40, 900, 80, 10), candidate("b", 1.5, 20, 30, 80, 0), node="b",
             policy="topsis"),
        "b was number 2 by topsis of 2; kube-scheduler's own scores preferred it.",
        id="second-by-a-rule-that-does-not-price",
    ),
    pytest.param(
        told(candidate("a", -0.9, 20, None, -50, 10), candidate("b", 1.1, 20, None, 50, 0)),
        "a was the cheapest of 2.",
        id="prices-of-both-signs-have-no-average-to-compare-with",
    ),
    pytest.param(
        told(candidate("a", 0.5, 20, 30, 80, 10), node="elsewhere"),
        "elsewhere was not among the 1 nodes that the extender was asked about.",
        id="a-node-not-offered",
    ),
    pytest.param(
        told(candidate("a", 1.0, 20, 30, 80, 10)),
        "a was the only node offered that the extender knows.", id="one-node",
    ),
    pytest.param(
        told(),
        "The extender could not rank any of the nodes offered, so all scored alike.",
        id="no-node",
    ),
])  # fmt: skip
def test_the_sentence_tells_where_what_it_saves_and_what_that_is_due_to(
    sentence: str, expected: str
) -> None:
    assert sentence == expected


figures = st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(float("nan")))
amounts = st.floats(0, 1e6)


@given(
    rows=st.lists(st.tuples(figures, amounts, figures, figures), max_size=5),
    policy=st.sampled_from(["onnx", "least-cost", "least-carbon", "least-energy", "spread"]),
)
def test_any_figures_make_a_sentence(rows: list[Any], policy: str) -> None:
    offered = [
        candidate(f"n{n}", relative, wh, carbon, price, n)
        for n, (relative, wh, carbon, price) in enumerate(rows)
    ]
    sentence = told(*offered, node="n1", policy=policy)
    assert sentence.endswith(".")
    assert "nan" not in sentence


def test_for_a_pod_that_requests_nothing_the_message_says_what_to_add(
    new_world: Callable[..., World], pod: Callable[..., dict[str, Any]]
) -> None:
    world = new_world(policy="onnx")
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    world.scores("a", "b", pod=pod(cpu="0", memory="0"))
    (decision,) = world.explanations().decisions("default", "p1")
    assert "set resources.requests for its containers" in decision["why"]


def test_a_decision_is_reported_with_weights_bundle_and_reason(
    new_world: Callable[..., World],
) -> None:
    world = new_world(policy="onnx")
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    world.scores("a", "b")
    (decision,) = world.explanations().decisions("default", "p1")
    assert decision["weights"] == WEIGHTS
    assert decision["bundle"] == "prior"
    assert decision["why"].startswith("a was the cheapest of 2: ")
    assert "carbon (50 against 375 g/kWh)" in decision["why"]
