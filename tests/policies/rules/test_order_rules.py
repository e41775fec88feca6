"""Orders of waiting jobs, each reckoned by hand."""

import math

import numpy as np
import pytest

from greensched_policies.encoding.queue_columns import QueueColumns
from greensched_policies.rules.catalogue import ORDER_RULES

# Three jobs: the oldest is long and large, the second short and small, the third in between.
QUEUE = QueueColumns(
    submit_s=np.array([[1.0, 100.0, 1000.0]]),
    wait_s=np.array([[2000.0, 1900.0, 1000.0]]),
    estimate_s=np.array([[10_000.0, 100.0, 1000.0]]),
    cpu_cores=np.array([[64.0, 1.0, 16.0]]),
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("first-come", [1.0, 100.0, 1000.0], id="first-come"),
        pytest.param("shortest-first", [10_000.0, 100.0, 1000.0], id="shortest-first"),
        pytest.param("longest-first", [-10_000.0, -100.0, -1000.0], id="longest-first"),
        pytest.param("f1", [4 * 64.0, 2 + 870 * 2.0, 3 * 16 + 870 * 3.0], id="f1"),
        pytest.param(
            "f2", [100 * 64.0, 10 + 25_600 * 2.0, math.sqrt(1000) * 16 + 25_600 * 3.0], id="f2"
        ),
        pytest.param("f3", [640_000.0, 100 + 6.86e6 * 2, 16_000 + 6.86e6 * 3], id="f3"),
        pytest.param("f4", [80_000.0, 100 + 530_000 * 2.0, 4000 + 530_000 * 3.0], id="f4"),
        pytest.param("wfp3", [-(0.2**3) * 64, -(19.0**3), -16.0], id="wfp3"),
        pytest.param("unicep", [-2000 / (6 * 10_000), -19.0, -1 / 4], id="unicep"),
    ],
)
def test_priorities_are_those_of_the_papers(name: str, expected: list[float]) -> None:
    assert ORDER_RULES[name](QUEUE)[0].tolist() == pytest.approx(expected)


@pytest.mark.parametrize("name", ORDER_RULES)
def test_small_requests_and_fresh_arrivals_have_finite_priorities(name: str) -> None:
    fresh = QueueColumns(*(np.array([[value]]) for value in (1.0, 0.0, 1.0, 0.01)))
    found = ORDER_RULES[name](fresh)
    assert found.shape == (1, 1)
    assert np.isfinite(found).all()


@pytest.mark.parametrize("name", ORDER_RULES)
def test_an_order_leaves_the_queue_as_it_was(name: str) -> None:
    before = [column.tobytes() for column in QUEUE]
    ORDER_RULES[name](QUEUE)[0, 0] = 7.0
    assert [column.tobytes() for column in QUEUE] == before
