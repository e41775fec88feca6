"""The operator knows how busy the cluster was, and which share of a node work requests."""

from dataclasses import replace

import pytest

from greensched_core.cluster_settings import PowerAssumptions
from greensched_core.power.curves import PowerCurve
from greensched_core.state import Node
from greensched_operator.planning.busy_cores import BusyCores
from greensched_operator.planning.cluster_state import NodeShape, Zone, mean_zone
from greensched_operator.planning.start_planning import core_plan
from greensched_operator.planning.work_power import largest_node, share_of_node
from greensched_policies.costs.cost import CURVE_POINTS
from greensched_policies.planning.planning import Running
from tests.operator.annotated_work import work_of
from tests.operator.situations import situation_of

ZONES = (Zone("DE-LU", 64.0, 2.0), Zone("GB", 36.0, 2.0))
BEGIN_S = 1_700_000_000.0
SIZES = ((32.0, 512.0), (64.0, 128.0))


def run(cores: float, zone: int = 0) -> Running:
    return Running(zone, BEGIN_S + 9000.0, cores)


def test_the_first_mean_is_what_runs_now() -> None:
    busy = BusyCores(BEGIN_S)
    assert busy.note(ZONES, [run(30.0), run(20.0, 1)], BEGIN_S + 60.0) == 0.5


def test_each_share_counts_for_the_time_since_the_last_one() -> None:
    busy = BusyCores(BEGIN_S)
    busy.note(ZONES, [run(50.0)], BEGIN_S + 100.0)
    assert busy.note(ZONES, [run(90.0)], BEGIN_S + 400.0) == pytest.approx(0.8)


def test_a_cluster_without_nodes_is_idle() -> None:
    assert BusyCores(BEGIN_S).note((), [run(1.0)], BEGIN_S + 60.0) == 0.0
    assert BusyCores(BEGIN_S).note((replace(ZONES[0], cpu_cores=0.0),), [], BEGIN_S + 60.0) == 0.0


def test_a_clock_that_is_set_back_loses_nothing() -> None:
    busy = BusyCores(BEGIN_S)
    busy.note(ZONES, [run(50.0)], BEGIN_S + 100.0)
    assert busy.note(ZONES, [run(100.0)], BEGIN_S - 3600.0) == 0.5
    assert busy.note(ZONES, [run(50.0)], BEGIN_S + 200.0) == 0.5


@pytest.mark.parametrize(("pods", "share"), [(1, 1.0), (4, 0.25), (0, 1.0)])
def test_a_workload_is_as_large_as_one_of_its_pods(pods: int, share: float) -> None:
    """A Job whose parallelism is 0 has no pods now."""
    work = replace(work_of("train", {}), pods=pods, cpu_cores=32.0, memory_bytes=4.0)
    large, small = NodeShape(32.0, 64.0, 0.0, 1.0, 1), NodeShape(16.0, 128.0, 0.0, 1.0, 2)
    zones = replace(ZONES[0], shapes=(large,)), replace(ZONES[1], shapes=(small,))
    assert share_of_node(work, largest_node(zones)) == share


def test_work_in_a_cluster_without_nodes_has_no_size() -> None:
    assert share_of_node(work_of("train", {}), largest_node(())) == 0.0


def test_the_largest_node_has_the_most_cores_of_one_and_the_most_memory_of_another() -> None:
    curve = PowerCurve((100.0,) * CURVE_POINTS)
    nodes = [Node("n", "GB", *size, None, curve, "label", "m") for size in SIZES]
    zone = mean_zone("GB", nodes, PowerAssumptions(0.5, 0.5, 1.0))
    assert largest_node((zone,)) == (64.0, 512.0)


def test_the_plan_knows_how_busy_the_cluster_was() -> None:
    here = situation_of(BEGIN_S, [100.0] * 8, 50.0, *ZONES)
    assert core_plan(replace(here, busy_share=0.75)).busy_share == 0.75
