"""What a `when` head is shown of candidate starts."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.cost import WorkloadColumns
from greensched_policies.encoding.observation import DecisionToMake
from greensched_policies.encoding.slot_observation import SLOT_FEATURES, ComingDay
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.timing import Timing
from greensched_policies.encoding.weights import Weights
from greensched_policies.library.seeing_starts import encode_when

HOUR_S = 3600.0
SIX_IN_THE_MORNING_S = 7 * 86_400.0 + 6 * HOUR_S


def seen(slots: SlotColumns, left_s: float, day: tuple[float, float]) -> dict[str, list[float]]:
    """Return the features of the starts of an hour's work, by name."""
    work: tuple[Any, ...] = (1.0, 1e9, 0.0, HOUR_S)
    mean_memory: Any = 8e9
    asked = DecisionToMake(
        WorkloadColumns(*work), Weights(1.0, 1.0, 0.1), mean_memory,
        Timing(SIX_IN_THE_MORNING_S, left_s, 0.2, 0.995),
    )  # fmt: skip
    found = encode_when(slots, asked, ComingDay(*day))
    assert np.isfinite(found.slots).all() and np.isfinite(found.context).all()
    return dict(zip(SLOT_FEATURES, found.slots[0].T.tolist(), strict=True))


def hourly(carbon: list[float], price: list[float], runtime_s: list[float]) -> SlotColumns:
    wait_s = np.arange(len(carbon)) * HOUR_S
    columns = [
        wait_s,
        runtime_s,
        carbon,
        carbon,
        price,
        price,
        carbon,
        [0.0] * len(carbon),
        [0.0] * len(carbon),
    ]
    return SlotColumns(*(np.array([each], float) for each in columns))


def test_starts_are_told_against_the_deadline_the_day_and_now() -> None:
    slots = hourly([200.0, 100.0, 50.0], [10.0, -20.0, 30.0], [HOUR_S, HOUR_S, HOUR_S / 2])
    found = seen(slots, 3 * HOUR_S, (100.0, 20.0))
    assert found["slack_used"] == pytest.approx([0.0, 0.5, 0.8])  # of two hours, and of 2.5
    # ln(3) and ln(2) over five errors of 0.2; half an hour has ln(2) too.
    assert found["deadline_margin"] == pytest.approx([1.0, math.log(2.0), math.log(2.0)])
    assert found["carbon_of_day"] == pytest.approx([2.0, 1.0, 0.5])
    assert found["price_of_day"] == pytest.approx([0.5, -1.0, 1.5])
    assert found["carbon_of_now"] == pytest.approx([1.0, 0.5, 0.125])
    assert found["day_sin"] == pytest.approx(
        [1.0, math.sin(7 * math.pi / 12), math.sin(8 * math.pi / 12)]
    )
    assert found["day_cos"][0] == pytest.approx(0.0, abs=1e-6)


def test_without_a_deadline_no_slack_is_used_and_all_is_safe() -> None:
    found = seen(hourly([1.0, 2.0], [1.0, 1.0], [HOUR_S] * 2), math.inf, (math.nan, math.nan))
    assert (found["slack_used"], found["deadline_margin"]) == ([0.0, 0.0], [1.0, 1.0])
    assert (found["carbon_of_day"], found["price_of_day"]) == ([1.0, 1.0], [1.0, 1.0])


@given(
    st.lists(
        st.tuples(st.floats(0.0, 2000.0), st.floats(-500.0, 3000.0), st.floats(1.0, 1e6)),
        min_size=1,
        max_size=20,
    ),
    st.floats(-1e5, 1e7),
    st.tuples(st.floats(0.0, 1000.0), st.floats(-500.0, 500.0)),
)
def test_every_value_is_finite(
    starts: list[tuple[float, float, float]], left_s: float, day: tuple[float, float]
) -> None:
    seen(hourly(*(list(each) for each in zip(*starts, strict=True))), left_s, day)
