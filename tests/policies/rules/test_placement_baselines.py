"""The literature's placement rules on two nodes, reckoned by hand."""

import numpy as np
import pytest

from greensched_policies.costs.cost import (
    CostModel,
    NodeColumns,
    WorkloadColumns,
    ZoneColumns,
    curve_table,
)
from greensched_policies.encoding.observation import Observation
from greensched_policies.rules.catalogue import WHERE_RULES
from tests.policies.nodes_seen import decision, seen_by_library

GIB = 2.0**30
HOUR_S = 3600.0
MODEL = CostModel(curve_table([[100.0 + 20.0 * k for k in range(11)]]), 1.0, 0.8, False)


def two_nodes(
    cores: float = 2.0, memory_gib: float = 8.0, gpus: float = 1.0, *, turned: bool = False
) -> Observation:
    """Encode a workload of an hour before nodes A and B, B before A if turned.

    A has 10 cores, 3 of them busy, 32 GiB, 16 of them free, 4 GPUs, 2 of them free, 100 g/kWh.
    B has 20 cores, 10 of them busy, 64 GiB, 48 of them free, 2 GPUs, 1 of them free, 300 g/kWh,
    and runs twice as fast. A busy GPU draws 0.8 · (400 − 50) W, a core 200 W over the cores.
    """
    columns = np.array([
        [10.0, 20.0], [0.3, 0.5], [32 * GIB, 64 * GIB], [16 * GIB, 48 * GIB], [4.0, 2.0],
        [2.0, 1.0], [50.0, 50.0], [400.0, 400.0], [0.0, 0.0], [1.0, 2.0], [1.0, 1.0], [0.0, 0.0],
        [100.0, 300.0], [50.0, 50.0],
    ])  # fmt: skip
    columns = np.ascontiguousarray(columns[:, ::-1] if turned else columns)[:, None, :]
    nodes, zones = NodeColumns(*columns[:12]), ZoneColumns(*columns[12:])
    asked = (cores, memory_gib * GIB, gpus, HOUR_S)
    workload = WorkloadColumns(*(np.array([[value]]) for value in asked))
    return seen_by_library(nodes, workload, zones, MODEL, decision(1.0, 1.0, 1.0)).observation


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param("first-fit", [0.5, 1.5], id="first-fit"),
        # An hour and half of one: 4/3 and 2/3 of the mean.
        pytest.param("fastest", [4 / 3, 2 / 3], id="fastest"),
        # After placement CPU and memory are used to 0.5 and 0.75 of A, 0.6 and 0.375 of B.
        # LeastAllocated: 0.375 and 0.5125. Half the distance of the two grows from 0.1 to 0.125 on
        # A and shrinks from 0.125 to 0.1125 on B, so BalancedAllocation: 0.7375 and 0.75625.
        # Their sums: 1.1125 and 1.26875, taken from 2.25.
        pytest.param("kubernetes-default", [1.1375, 0.98125], id="kubernetes-default"),
        # A: 0.2 · 0.7 + 0.25 · 0.5 + 0.25 · 0.5 = 0.39
        # B: 0.1 · 0.5 + 0.125 · 0.75 + 0.5 · 0.5 = 0.39375
        pytest.param("tetris", [-0.39, -0.39375], id="tetris"),
        # Energy 320 and 150 Wh, mean 235; carbon 32 and 45 g, mean 38.5; others hold 0.4 of A
        # (CPU 0.3, memory 0.5) and 0.375 of B (0.5 and 0.25).
        pytest.param(
            "keids",
            [(320 / 235 + 32 / 38.5 + 0.9) / 3, (150 / 235 + 45 / 38.5 + 0.875) / 3],
            id="keids",
        ),
    ],
)
def test_costs_are_those_of_the_papers(rule: str, expected: list[float]) -> None:
    found = WHERE_RULES[rule](*two_nodes())
    assert found.dtype == np.float32
    assert found[0].tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rule", ["fastest", "keids", "kubernetes-default", "tetris"])
def test_costs_go_with_the_node_not_with_its_place(rule: str) -> None:
    there, back = WHERE_RULES[rule](*two_nodes()), WHERE_RULES[rule](*two_nodes(turned=True))
    np.testing.assert_allclose(there[0], back[0, ::-1], rtol=1e-6)


def test_first_fit_takes_the_first_whatever_it_is() -> None:
    there, back = (WHERE_RULES["first-fit"](*two_nodes(turned=turned)) for turned in (False, True))
    assert there.tolist() == back.tolist() == [[0.5, 1.5]]


def test_a_workload_without_gpus_is_aligned_by_cpu_and_memory_alone() -> None:
    # A: 0.2 · 0.7 + 0.25 · 0.5 = 0.265; B: 0.1 · 0.5 + 0.125 · 0.75 = 0.14375
    found = WHERE_RULES["tetris"](*two_nodes(gpus=0.0))
    assert found[0].tolist() == pytest.approx([-0.265, -0.14375], rel=1e-6)


def test_a_workload_that_asks_for_nothing_is_aligned_with_nobody() -> None:
    assert WHERE_RULES["tetris"](*two_nodes(0.0, 0.0, 0.0)).tolist() == [[0.0, 0.0]]
