"""The library sees the nodes of the rows that it is given, and no others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greensched_policies.library.node_table import NodeTable
from greensched_policies.library.seeing_nodes import CostRatios, NodesSeen, NodesToSee, PodNeeds
from tests.policies.nodes_seen import decision

CURVE = np.linspace(50.0, 250.0, 11)
# Of three zones, over the run and over the day.
SIGNALS = np.array([
    [100.0, np.nan, 300.0], [10.0, 20.0, np.nan], [50.0, 100.0, np.nan], [-5.0, 0.0, 1.0]
])  # fmt: skip


def random_table(nodes: int, seed: int, *, has_shares: bool) -> NodeTable:
    dice = np.random.default_rng(seed)
    fixed = np.column_stack([
        dice.uniform(1, 64, nodes), dice.uniform(1e9, 1e11, nodes), dice.integers(0, 8, nodes),
        np.full(nodes, 50.0), np.full(nodes, 400.0), np.zeros(nodes), dice.uniform(0.5, 2, nodes),
        dice.uniform(1, 2, nodes),
    ])  # fmt: skip
    moving = np.column_stack([
        dice.uniform(0, 1, nodes), dice.uniform(0, 1e11, nodes), dice.integers(0, 8, nodes),
        dice.integers(0, 2, nodes),
    ])  # fmt: skip
    share = np.where(dice.random(nodes) < 0.5, np.nan, dice.random(nodes))
    zone = dice.integers(0, 3, nodes).astype(np.int32)
    return NodeTable(fixed, moving, zone, share if has_shares else np.empty(0))


def seen(table: NodeTable, rows: list[int]) -> NodesSeen:
    needs, ratios = PodNeeds(2.0, 1e9, 1.0, 3600.0), CostRatios(0.5, 0.6, True)
    asked = decision(0.3, 0.6, 0.1, planned_zone=1)
    return NodesToSee(table, CURVE).see(np.array(rows, np.int64), needs, SIGNALS, ratios, asked)


@given(st.lists(st.integers(0, 19), min_size=1, max_size=30), st.integers(0, 99), st.booleans())
def test_rows_in_any_order_are_seen_as_if_the_table_had_them_alone(
    rows: list[int], seed: int, has_shares: bool
) -> None:
    table = random_table(20, seed, has_shares=has_shares)
    shares = table.gpu_share[rows] if has_shares else table.gpu_share
    alone = NodeTable(table.fixed[rows], table.moving[rows], table.zone[rows], shares)
    chosen, every = seen(table, rows), seen(alone, list(range(len(rows))))
    np.testing.assert_array_equal(chosen.observation.nodes, every.observation.nodes)
    np.testing.assert_array_equal(chosen.observation.context, every.observation.context)
    np.testing.assert_array_equal(chosen.power_w, every.power_w)
    np.testing.assert_array_equal(chosen.runtime_s, every.runtime_s)
    assert chosen[3:] == every[3:], "what is lacking"


@pytest.mark.parametrize("rows", [[-1], [0, 20], [3, 2**40]])
def test_a_row_that_there_is_not_is_refused(rows: list[int]) -> None:
    with pytest.raises(IndexError, match=f"rows {min(rows)} to {max(rows)} of 20 nodes"):
        seen(random_table(20, 1, has_shares=False), rows)
