"""Held work that no node can take, and work of a zone without a forecast: users are told."""

from dataclasses import replace

import numpy as np
import pytest

from greensched_core.testing import GIB
from greensched_operator.holding.judging import MayWait, judge
from greensched_operator.planning.cluster_state import NodeShape, Zone
from greensched_operator.planning.place_faults import place_fault
from greensched_operator.planning.plan_words import why_now
from greensched_operator.planning.situation import Situation
from greensched_operator.planning.start_planning import plan_starts
from greensched_policies.planning.outlook import SLOT_S, outlook_of
from tests.operator.annotated_work import ENFORCING, HOUR_S, NOW_S, marks, rules, work_of
from tests.operator.situations import situation_of

NODES = NodeShape(cpu_cores=32.0, memory_bytes=64 * GIB, gpus=0.0, speed=1.0, count=3)
WITH_GPUS = NodeShape(cpu_cores=16.0, memory_bytes=128 * GIB, gpus=4.0, speed=1.0, count=1)


def in_zone(*shapes: NodeShape) -> Situation:
    return situation_of(NOW_S, [500.0] * 96, np.nan, Zone("A", 64.0, 5.0, shapes=shapes))


def held(**needs: float) -> MayWait:
    work = work_of("train", marks(NOW_S, NOW_S + 4 * HOUR_S, deadline="8h", runtime="30m"))
    found = judge(replace(work, **needs), rules(ENFORCING), NOW_S)  # type: ignore[arg-type]  # a table
    assert isinstance(found, MayWait)
    return found


@pytest.mark.parametrize(
    ("needs", "told"),
    [
        pytest.param({"cpu_cores": 32.0}, "", id="fits-exactly"),
        pytest.param({"cpu_cores": 33.0}, "33 cores", id="more-cores"),
        pytest.param({"memory_bytes": 129 * GIB}, "129 GiB", id="more-memory"),
        pytest.param({"gpus": 4.0}, "", id="all-gpus-of-a-node"),
        pytest.param({"gpus": 16.0}, "16 GPUs; the most of any are 32 cores", id="more-gpus"),
        pytest.param({"cpu_cores": 32.0, "gpus": 1.0}, "32 cores", id="no-node-has-both"),
    ],
)
def test_work_that_no_node_can_take_is_told_of_when_it_is_held(
    needs: dict[str, float], told: str
) -> None:
    fault = place_fault(held(**needs), in_zone(NODES, WITH_GPUS))
    assert told in fault
    assert bool(told) == bool(fault)


def test_a_selector_that_no_node_matches_is_told_of() -> None:
    one = held()
    choosy = replace(one, work=replace(one.work, node_selector={"disk": "nvme"}))
    fault = place_fault(choosy, in_zone(NODES))
    assert "no node has the labels of its nodeSelector, disk=nvme" in fault
    there = replace(in_zone(NODES), zones_for=lambda _: frozenset({"A"}))
    assert place_fault(choosy, there) == ""


def test_of_a_cluster_whose_nodes_are_not_known_nothing_is_told() -> None:
    assert place_fault(held(gpus=16.0), in_zone()) == ""


def test_work_of_a_zone_without_a_forecast_starts_now_and_says_so() -> None:
    now = in_zone(NODES)
    constant = np.full((1, 96), 481.0)
    outlook = outlook_of(now.outlooks.outlook.begin_s, SLOT_S, constant, constant, np.ones(1, int))
    unknown = replace(now, outlooks=replace(now.outlooks, outlook=outlook))
    [planned], _ = plan_starts([held()], unknown)
    assert planned.is_now
    assert why_now(planned).startswith("there is no forecast for zone A: it has no GridSignal")
