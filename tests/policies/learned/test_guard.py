from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from greensched_policies.learned.guard import FallbackReason, NamedPolicy, WhereGuard

Costs = npt.NDArray[np.float32]
NODES = np.zeros((1, 3, 16), dtype=np.float32)
CONTEXT = np.zeros((1, 8), dtype=np.float32)


class Stage:
    """A guard with a clock that the model itself moves on."""

    def __init__(self, fallback: Callable[[Costs, Costs], Costs] | None = None) -> None:
        self.now = 100.0
        self.takes_s = 0.001
        self.costs = np.full((1, 3), 2.0, dtype=np.float32)
        self.error: Exception | None = None
        self.calls = 0
        self.counted: Counter[FallbackReason] = Counter()
        self.guard = WhereGuard(
            NamedPolicy("onnx", self.model),
            NamedPolicy("rule", fallback or (lambda nodes, context: np.zeros((1, 3), np.float32))),
            budget_s=0.02,
            monotonic=lambda: self.now,
            count=lambda reason: self.counted.update([reason]),
        )

    def model(self, nodes: Costs, context: Costs) -> Costs:
        self.calls += 1
        self.now += self.takes_s
        if self.error:
            raise self.error
        return self.costs

    def ask(self) -> tuple[str, FallbackReason | None]:
        answer = self.guard.answer(NODES, CONTEXT)
        assert answer.relative_cost.shape == (1, 3)
        assert np.isfinite(answer.relative_cost).all()
        return answer.answered_by, answer.reason


def test_a_good_answer_is_the_models_and_nothing_is_counted() -> None:
    stage = Stage()
    assert stage.ask() == ("onnx", None)
    assert not stage.counted


@pytest.mark.parametrize(
    ("costs", "reason"),
    [
        pytest.param([[1.0, np.nan, 1.0]], FallbackReason.NOT_FINITE, id="nan"),
        pytest.param([[1.0, np.inf, 1.0]], FallbackReason.NOT_FINITE, id="infinity"),
        pytest.param([[1.0, 1.0]], FallbackReason.ERROR, id="other-shape"),
    ],
)
def test_an_unusable_answer_is_the_rules(costs: list[list[float]], reason: FallbackReason) -> None:
    stage = Stage()
    stage.costs = np.array(costs, dtype=np.float32)
    assert stage.ask() == ("rule", reason)
    assert stage.counted == {reason: 1}


def test_an_exception_is_answered_by_the_rule() -> None:
    stage = Stage()
    stage.error = RuntimeError("no such kernel")
    assert stage.ask() == ("rule", FallbackReason.ERROR)


def test_a_late_answer_is_used_and_counted() -> None:
    stage = Stage()
    stage.takes_s = 0.021
    assert stage.ask() == ("onnx", FallbackReason.LATE)
    assert stage.counted == {FallbackReason.LATE: 1}


def test_an_answer_just_in_time_is_not_late() -> None:
    stage = Stage()
    stage.now, stage.takes_s = 0.0, 0.02
    assert stage.ask() == ("onnx", None)


def test_three_late_answers_in_a_row_open_the_breaker_for_30_seconds() -> None:
    stage = Stage()
    stage.takes_s = 0.5
    for _ in range(3):
        assert stage.ask() == ("onnx", FallbackReason.LATE)
    assert stage.guard.is_open
    assert stage.ask() == ("rule", FallbackReason.OPEN)
    stage.now += 29.9
    assert stage.ask() == ("rule", FallbackReason.OPEN)
    assert stage.calls == 3
    stage.now += 0.2
    stage.takes_s = 0.001
    assert stage.ask() == ("onnx", None)
    assert not stage.guard.is_open


def test_a_timely_answer_breaks_the_row() -> None:
    stage = Stage()
    for takes_s in (0.5, 0.5, 0.001, 0.5, 0.5):
        stage.takes_s = takes_s
        stage.ask()
    assert not stage.guard.is_open


def test_late_again_on_the_first_try_opens_the_breaker_at_once() -> None:
    stage = Stage()
    stage.takes_s = 0.5
    for _ in range(3):
        stage.ask()
    stage.now += 30.1
    assert stage.ask() == ("onnx", FallbackReason.LATE)
    assert stage.ask() == ("rule", FallbackReason.OPEN)


def test_slow_exceptions_open_the_breaker_too() -> None:
    stage = Stage()
    stage.takes_s, stage.error = 0.5, RuntimeError("stuck")
    for _ in range(3):
        assert stage.ask() == ("rule", FallbackReason.ERROR)
    assert stage.ask() == ("rule", FallbackReason.OPEN)


def test_should_the_rule_fail_as_well_all_candidates_are_equal() -> None:
    def broken(nodes: Costs, context: Costs) -> Costs:
        raise ZeroDivisionError

    stage = Stage(fallback=broken)
    stage.error = RuntimeError("no such kernel")
    answer = stage.guard.answer(NODES, CONTEXT)
    assert answer.answered_by == "none"
    assert answer.relative_cost.tolist() == [[1.0, 1.0, 1.0]]
