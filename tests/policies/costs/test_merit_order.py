"""The nodes of a zone in the order of the energy that they need for work."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.costs.merit_order import ALIKE, MERIT_STEPS, merit_order


def steps(
    busy_w: list[float], sizes: list[float], speeds: list[float], cores: list[float] | None = None
) -> list[float]:
    """Return the merit order of nodes; `sizes` are their cores, unless those are given."""
    given_cores = sizes if cores is None else cores
    columns = (np.array(each, float) for each in (busy_w, sizes, speeds, given_cores))
    return list(merit_order(*columns))


def test_the_nodes_that_need_least_energy_come_first() -> None:
    # A quarter of the cores draw 4 W each, all others 1 W: 1.75 W in the mean.
    found = steps([64.0, 48.0], [16.0, 48.0], [1.0, 1.0])
    assert found == pytest.approx([1.0 / 1.75] * 24 + [4.0 / 1.75] * 8)


def test_a_slow_node_needs_its_watts_for_longer() -> None:
    # The slow one draws less, but for three times as long. Means: 1.5 W, 2 s.
    found = steps([16.0, 32.0], [16.0, 16.0], [1.0 / 3.0, 1.0])
    assert found == pytest.approx([2.0 / 3.0] * 16 + [3.0 / 3.0] * 16)


def test_nodes_without_gpus_have_no_place_among_gpus() -> None:
    found = steps([0.0, 800.0, 400.0], [0.0, 4.0, 4.0], [9.0, 1.0, 1.0], [64.0, 16.0, 16.0])
    assert found == pytest.approx([2.0 / 3.0] * 16 + [4.0 / 3.0] * 16)


def test_a_step_across_two_kinds_of_nodes_has_the_mean_of_both() -> None:
    found = steps(
        [1.0, 3.0 * (2.0 * MERIT_STEPS - 1.0)], [1.0, 2.0 * MERIT_STEPS - 1.0], [1.0, 1.0]
    )
    assert found[0] == pytest.approx((1.0 + 3.0) / 2.0 * found[1] / 3.0)


def test_unequal_nodes_that_need_the_same_energy_make_equal_steps() -> None:
    # Twice the watts for half the time; means: 1.5 W, 0.75 s.
    found = steps([7.0, 14.0], [7.0, 7.0], [1.0, 2.0])
    assert found == [round(1.0 / (1.5 * 0.75), 12)] * MERIT_STEPS


@pytest.mark.parametrize(
    ("busy_w", "sizes"),
    [
        pytest.param([], [], id="no-nodes"),
        pytest.param([0.0, 0.0], [8.0, 8.0], id="nothing-drawn"),
        pytest.param([0.0, 0.0], [0.0, 0.0], id="no-gpus"),
    ],
)
def test_where_nothing_is_known_all_nodes_are_alike(
    busy_w: list[float], sizes: list[float]
) -> None:
    assert steps(busy_w, sizes, [1.0] * len(sizes)) == list(ALIKE)


NODES = st.tuples(st.floats(1.0, 900.0), st.floats(1.0, 256.0), st.floats(0.1, 4.0))


@given(st.lists(NODES, min_size=1, max_size=12))
def test_steps_rise_and_a_full_zone_takes_what_its_nodes_take(
    nodes: list[tuple[float, float, float]],
) -> None:
    busy_w, cores, speeds = (np.array(column) for column in zip(*nodes, strict=True))
    found = np.array(merit_order(busy_w, cores, speeds, cores))
    assert (np.diff(found) >= -1e-9).all()
    as_planned = busy_w.sum() * (cores / speeds).sum() / cores.sum()
    assert found.mean() * as_planned == pytest.approx((busy_w / speeds).sum())
