"""Rules of one's own that the engine cannot call are told with their names, and why."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from greensched_core.errors import BadInput
from greensched_policies.compiling.compiled import TRIED, callee
from greensched_policies.encoding.slots import SlotColumns

ONE = SlotColumns._make([np.ones(TRIED)] * 9)


def as_it_is(slots: SlotColumns) -> Any:
    return slots.wait_s * 1.0


def in_single(slots: SlotColumns) -> Any:
    return slots.wait_s.astype(np.float32)


def first_only(slots: SlotColumns) -> Any:
    return slots.wait_s[0] * 1.0


def of_one_only(slots: SlotColumns) -> Any:
    return slots.wait_s[:, :1] * 1.0


def unknown(slots: SlotColumns) -> Any:
    return slots.wait_s * np.nan


def out_of_bounds(slots: SlotColumns) -> Any:
    return slots.wait_s * slots.wait_s[0, 3]


def as_it_is_seen(slots: SlotColumns) -> Any:
    return slots.wait_s[:, ::-1]


def a_whole_column(slots: SlotColumns) -> Any:
    return slots.wait_s


def in_place(slots: SlotColumns) -> Any:
    slots.wait_s[:] = 2.0
    return slots.wait_s * 1.0


def by_text(slots: SlotColumns) -> Any:
    return np.array([str(each) for each in slots.wait_s])


def test_a_rule_that_keeps_to_the_form_is_taken() -> None:
    assert callee(as_it_is, np.float64, ONE)[0](ONE).tolist() == [[1.0] * 3] * 2


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (in_single, r"the rule in_single of \S+ returns array\(float32, 2d, C\); it must return"),
        (first_only, r"the rule first_only of \S+ returns array\(float64, 1d, C\)"),
        (of_one_only, r"the rule of_one_only of \S+ returns \[2, 1\] for 2 decisions among 3"),
        (unknown, r"the rule unknown of \S+ returns NaN"),
        (out_of_bounds, r"the rule out_of_bounds of \S+ fails: index 3 is out of bounds"),
        (as_it_is_seen, r"the rule as_it_is_seen of \S+ returns a part of its input: return a"),
        (a_whole_column, r"the rule a_whole_column of \S+ returns a part of its input: return a"),
        (in_place, r"the rule in_place of \S+ changes its input: make it work on a .copy"),
        (by_text, r"numba cannot compile the rule by_text of \S+: "),
    ],
)
def test_a_rule_that_cannot_be_called_is_reported(rule: Callable[..., Any], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        callee(rule, np.float64, ONE)
