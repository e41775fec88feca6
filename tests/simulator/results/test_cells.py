"""Figures as tables show them."""

import pytest

from greensched_simulator.results.cells import count


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(4000.0, "4,000", id="whole"),
        pytest.param(3998.5, "3,998.5", id="a-mean-of-two-seeds"),
        pytest.param(123_456.5, "123,456", id="so-many-that-a-half-does-not-matter"),
    ],
)
def test_met_and_missed_add_up_to_all(value: float, shown: str) -> None:
    assert count(value) == shown
