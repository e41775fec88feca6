import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from greensched_core.errors import BadInput
from greensched_core.testing import make_node
from greensched_extender.decisions import render
from greensched_policies.learned.card import SHIPPED_PRIOR
from greensched_policies.learned.guard import Guard, NamedPolicy
from greensched_policies.rules.where import weighted_cost

World = Any
Array = npt.NDArray[np.float32]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of the shipped bundle that a test may spoil."""
    return Path(shutil.copytree(SHIPPED_PRIOR, tmp_path / "bundle"))


def spoil(bundle: Path, **changes: Any) -> None:
    card = json.loads((bundle / "card.json").read_text())
    (bundle / "card.json").write_text(json.dumps(card | changes))


def test_the_shipped_model_answers(new_world: Callable[..., World]) -> None:
    world = new_world(policy="onnx")
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    assert world.scores("a", "b") == {"a": 10, "b": 0}
    assert world.decisions.of("default", "p1")[0].policy == "onnx"
    assert world.choice.describe()["bundle"]["name"] == "prior"
    assert world.counted("bundle_loads_total", outcome="loaded") == 1


def test_an_unknown_rule_is_refused_by_name(new_world: Callable[..., World]) -> None:
    with pytest.raises(BadInput, match=r"'greenest'; the rules are bin-pack"):
        new_world(policy="greenest")


def test_a_wrong_bundle_at_the_start_leaves_the_rule_serving(
    new_world: Callable[..., World], bundle: Path
) -> None:
    spoil(bundle, encoding_version=99)
    world = new_world(policy="onnx", bundle=bundle)
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    assert world.scores("a", "b") == {"a": 10, "b": 0}
    assert world.decisions.of("default", "p1")[0].policy == "weighted-cost"
    assert "encoding version 99" in world.choice.describe()["refusedBundle"]
    assert not world.choice.reload(), "nothing changed: not read again"
    assert world.counted("bundle_loads_total", outcome="refused") == 1
    shutil.copytree(SHIPPED_PRIOR, bundle, dirs_exist_ok=True)
    assert world.choice.reload()
    assert world.choice.serving == "onnx"
    assert world.choice.describe()["refusedBundle"] is None


def test_a_wrong_bundle_later_leaves_the_old_one_serving(
    new_world: Callable[..., World], bundle: Path
) -> None:
    world = new_world(policy="onnx", bundle=bundle)
    (bundle / "where.onnx").write_bytes(b"cut off")
    assert not world.choice.reload()
    told = world.choice.describe()
    assert told["serving"] == "onnx"
    assert "sha256" in told["refusedBundle"]
    assert world.counted("bundle_loads_total", outcome="refused") == 1


def test_a_new_bundle_is_taken_up_when_its_card_changes(
    new_world: Callable[..., World], bundle: Path
) -> None:
    world = new_world(policy="onnx", bundle=bundle)
    spoil(bundle, name="better")
    assert world.choice.reload()
    assert world.choice.labels()[:2] == ("onnx", "better")


def test_a_decision_names_the_bundle_that_made_it_not_the_one_that_serves_now(
    new_world: Callable[..., World], bundle: Path
) -> None:
    world = new_world(policy="onnx", bundle=bundle)
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    world.scores("a", "b")
    spoil(bundle, name="better")
    assert world.choice.reload()
    assert render(world.decisions.of("default", "p1")[0])["bundle"] == "prior"


def test_a_folder_that_is_gone_leaves_the_old_one_serving(
    new_world: Callable[..., World], bundle: Path
) -> None:
    world = new_world(policy="onnx", bundle=bundle)
    shutil.rmtree(bundle)
    assert not world.choice.reload()
    assert world.choice.serving == "onnx"
    assert world.choice.describe()["refusedBundle"]


@pytest.mark.parametrize(
    ("behaviour", "reason", "answered_by"),
    [
        ("late", "late", "model"),
        ("nan", "not_finite", "weighted-cost"),
        ("raises", "error", "weighted-cost"),
    ],
)
def test_a_model_that_fails_still_gives_scores_and_is_counted(
    world: World, behaviour: str, reason: str, answered_by: str
) -> None:
    def model(nodes: Array, context: Array) -> Array:
        if behaviour == "raises":
            raise RuntimeError("bad graph")
        world.clock.advance(60.0 if behaviour == "late" else 0.0)
        relative_cost: Array = weighted_cost(nodes, context)
        return relative_cost * np.float32("nan") if behaviour == "nan" else relative_cost

    world.choice.guard = Guard(
        NamedPolicy("model", model),
        NamedPolicy("weighted-cost", weighted_cost),
        budget_s=0.02,
        monotonic=world.clock.monotonic,
        count=lambda why: world.metrics.guard_fallbacks.labels(why.value).inc(),
    )
    world.add(make_node("a", zone="FR"), make_node("b", zone="PL"))
    assert world.scores("a", "b") == {"a": 10, "b": 0}
    assert world.counted("guard_fallbacks_total", reason=reason) == 1
    decision = world.decisions.of("default", "p1")[0]
    assert (decision.policy, decision.fallback) == (answered_by, reason)
