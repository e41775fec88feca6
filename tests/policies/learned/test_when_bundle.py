"""The `when` head: its graph is the rule, its bundle is checked, its guard falls back to a rule."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

from greensched_policies.costs.cost import WorkloadColumns
from greensched_policies.encoding.observation import DecisionToMake
from greensched_policies.encoding.slot_observation import ComingDay
from greensched_policies.encoding.slots import FULL, SlotColumns
from greensched_policies.encoding.timing import Timing
from greensched_policies.encoding.weights import Weights
from greensched_policies.learned.bundle import load_bundle
from greensched_policies.learned.card import SHIPPED_PRIOR, BundleError, describe_card
from greensched_policies.learned.guard import FallbackReason
from greensched_policies.learned.when_head import GuardedWhen, when_policy
from greensched_policies.library.seeing_starts import encode_when
from greensched_policies.rules.when import planned_window, run_now

PRIOR = load_bundle(SHIPPED_PRIOR)
WORK: tuple[Any, ...] = (2.0, 4e9, 0.0, 3600.0)
MEAN_MEMORY: Any = 64e9
ASKED = DecisionToMake(
    WorkloadColumns(*WORK),
    Weights(0.5, 0.5, 0.0),
    MEAN_MEMORY,
    Timing(1_700_000_000.0, 10.0, 0.2, 0.995),
)
DAY = ComingDay(1.0, 1.0)
Array = npt.NDArray[np.float32]


def starts(seed: int, batch: int = 1, count: int = 9) -> SlotColumns:
    """Return starts whose costs cross zero, of which some have room."""
    dice = np.random.default_rng(seed)
    columns = dice.uniform(0.0, 2.0, (9, batch, count))
    columns[6] -= 1.0
    return SlotColumns(*columns)


def encoded(seen: Array) -> SlotColumns:
    own = seen.astype(np.float64).transpose((2, 0, 1))[:8]
    return SlotColumns._make([*own, np.zeros_like(own[0])])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the shipped bundle that a test may spoil."""
    return Path(shutil.copytree(SHIPPED_PRIOR, tmp_path / "bundle"))


def change_card(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    card = json.loads((folder / "card.json").read_text())
    change(card)
    (folder / "card.json").write_text(json.dumps(card))


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 100))
def test_the_untrained_head_is_the_planned_window_on_what_it_sees(
    seed: int, batch: int, count: int
) -> None:
    seen = encode_when(starts(seed, batch, count), ASKED, DAY)
    found, wanted = PRIOR.when(seen.slots, seen.context), planned_window(encoded(seen.slots))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    best = np.take_along_axis(wanted, found.argmin(axis=1)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(best, wanted.min(axis=1), rtol=1e-6, atol=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60))
def test_while_any_start_has_room_the_head_chooses_what_the_rule_chooses(
    seed: int, count: int
) -> None:
    slots = starts(seed, 1, count)
    slots.busiest_over_run[0, np.random.default_rng(seed).integers(count)] = 0.5
    head = when_policy(PRIOR.when, ASKED, DAY)
    assert head(slots).argmin() == planned_window(slots).argmin()


@pytest.mark.parametrize(
    ("busiest", "chosen"),
    [
        pytest.param([FULL + 1e-6, FULL, 0.0], 1, id="just-full-has-room"),
        pytest.param([FULL, FULL + 1e-6, 0.0], 0, id="a-hair-more-has-none"),
        pytest.param([1.2, 1.1, 1.3], 1, id="else-the-least-overload"),
    ],
)
def test_the_head_tells_room_from_none_where_the_rule_does(
    busiest: list[float], chosen: int
) -> None:
    slots = starts(1, 1, 3)._replace(
        weighted_over_run=np.array([[1.0, 1.0001, 1.2]]),
        busiest_over_run=np.array([busiest]),
        completion=np.zeros((1, 3)),
    )
    head = when_policy(PRIOR.when, ASKED, DAY)
    assert head(slots).argmin() == planned_window(slots).argmin() == chosen


def without(head: str, folder: Path) -> Path:
    (folder / f"{head}.onnx").unlink()
    change_card(folder, lambda card: card["heads"].pop(head))
    return folder


def test_a_bundle_of_one_head_serves_whoever_needs_that_one(folder: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(folder, tmp_path / "other"))
    only_when, only_where = without("where", folder), without("when", other)
    assert list(load_bundle(only_when, needs=("when",)).heads) == ["when", "how_fast"]
    assert list(load_bundle(only_where).heads) == ["where", "how_fast"]
    assert list(load_bundle(only_when, needs=()).heads) == ["when", "how_fast"]
    with pytest.raises(BundleError, match=r"card\.json: heads: `where` is missing"):
        load_bundle(only_when)
    with pytest.raises(BundleError, match=r"card\.json: heads: `when` is missing"):
        load_bundle(only_where, needs=("when",))
    with pytest.raises(BundleError, match="`when` is missing"):
        _ = load_bundle(only_where).when


def test_a_bundle_without_any_head_is_refused(folder: Path) -> None:
    change_card(folder, lambda card: card["heads"].clear())
    with pytest.raises(BundleError, match="`where` or `when` or `how_fast` is missing"):
        load_bundle(folder, needs=())


@pytest.mark.parametrize("needs", [("where",), ("when",), ("where", "when")])
def test_a_head_that_is_wrong_spoils_the_whole_bundle(folder: Path, needs: tuple[str]) -> None:
    (folder / "when.onnx").write_bytes(b"cut off")
    with pytest.raises(BundleError, match=r"when\.onnx: sha256"):
        load_bundle(folder, needs=needs)


def test_graphs_that_were_swapped_are_found_by_what_they_take(folder: Path) -> None:
    graph = (folder / "where.onnx").read_bytes()
    (folder / "when.onnx").write_bytes(graph)

    def known(card: dict[str, Any]) -> None:
        where = card["heads"]["where"]
        card["heads"]["when"] |= {"sha256": where["sha256"], "parameters": where["parameters"]}

    change_card(folder, known)
    with pytest.raises(BundleError, match=r"inputs \['context', 'nodes'\].*\['context', 'slots'\]"):
        load_bundle(folder)


def test_a_sample_of_the_other_head_is_reported(folder: Path) -> None:
    def swap(card: dict[str, Any]) -> None:
        card["heads"]["when"]["sample"] = card["heads"]["where"]["sample"]

    change_card(folder, swap)
    with pytest.raises(BundleError, match=r"when\.onnx: the card's sample has no `slots`"):
        load_bundle(folder)


def test_a_head_that_is_too_slow_for_a_replan_is_refused(folder: Path) -> None:
    ticks = iter(np.arange(1000) * 0.02)  # twice its limit, a fifth of the other head's
    with pytest.raises(BundleError, match=r"when\.onnx: 672 candidates take 20\.0 ms, the limit"):
        load_bundle(folder, monotonic=lambda: float(next(ticks)))


def test_a_trained_net_drops_in_where_the_prior_was(folder: Path) -> None:
    """A net that has learned to add 1 per unit of bias is served, once its card agrees."""
    model = onnx.load(folder / "when.onnx")
    for tensor in model.graph.initializer:
        if tensor.name == "net.3.biases":
            tensor.CopyFrom(numpy_helper.from_array(np.ones(1, np.float32), tensor.name))
    graph = model.SerializeToString()
    (folder / "when.onnx").write_bytes(graph)

    def retold(card: dict[str, Any]) -> None:
        head = card["heads"]["when"]
        head["sha256"] = hashlib.sha256(graph).hexdigest()
        head["sample"]["relative_cost"] = [[v + 1.0 for v in head["sample"]["relative_cost"][0]]]

    change_card(folder, retold)
    seen = encode_when(starts(3), ASKED, DAY)
    trained = load_bundle(folder, needs=("when",)).when(seen.slots, seen.context)
    np.testing.assert_allclose(trained, PRIOR.when(seen.slots, seen.context) + 1.0, atol=1e-5)


def test_all_heads_are_described_in_words() -> None:
    lines = describe_card(SHIPPED_PRIOR)
    assert lines["when: shapes"].startswith("slots ['B', 15, 'S']")
    assert {"where: sha256", "when: sha256", "how_fast: sha256"} <= set(lines)


def guarded(
    model: Callable[[Array, Array], Array], counted: Counter[FallbackReason], **changes: Any
) -> GuardedWhen:
    terms: dict[str, Any] = {"budget_s": 1.0, "monotonic": lambda: 0.0}
    terms |= {"count": lambda reason: counted.update([reason])} | changes
    return GuardedWhen("onnx", model, ("run-now", run_now), **terms)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param([[1.0, np.nan, 0.0]], FallbackReason.NOT_FINITE, id="nan"),
        pytest.param([[1.0, 0.0]], FallbackReason.ERROR, id="other-shape"),
    ],
)
def test_an_unusable_answer_of_the_head_is_the_rules_and_counted(
    answer: list[list[float]], reason: FallbackReason
) -> None:
    counted: Counter[FallbackReason] = Counter()
    head = guarded(lambda slots, context: np.array(answer, np.float32), counted)
    found = head.policy(ASKED, DAY)(starts(1, 1, 3))
    assert found.tolist() == run_now(starts(1, 1, 3)).tolist()
    assert counted == {reason: 1}


def test_an_exception_of_the_head_is_the_rules_and_counted() -> None:
    def broken(slots: Array, context: Array) -> Array:
        raise RuntimeError("no such kernel")

    counted: Counter[FallbackReason] = Counter()
    found = guarded(broken, counted).policy(ASKED, DAY)(starts(1, 1, 3))
    assert found.tolist() == run_now(starts(1, 1, 3)).tolist()
    assert counted == {FallbackReason.ERROR: 1}


def test_late_answers_for_any_workloads_let_the_rule_serve() -> None:
    counted: Counter[FallbackReason] = Counter()
    ticks = iter(np.arange(100.0))
    head = guarded(PRIOR.when, counted, budget_s=0.5, monotonic=lambda: float(next(ticks)))
    for _ in range(4):
        head.policy(ASKED, DAY)(starts(1, 1, 3))
    assert counted == {FallbackReason.LATE: 3, FallbackReason.OPEN: 1}


def test_a_good_answer_of_the_head_is_used_and_nothing_is_counted() -> None:
    counted: Counter[FallbackReason] = Counter()
    found = guarded(PRIOR.when, counted).policy(ASKED, DAY)(starts(1, 1, 3))
    plain = when_policy(PRIOR.when, ASKED, DAY)(starts(1, 1, 3))
    assert found.tolist() == plain.tolist() and not counted
