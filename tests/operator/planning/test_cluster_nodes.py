"""The slowest node decides how long work may take; when it changes, all work is judged again."""

from typing import Any

import msgspec
import pytest

from greensched_core import labels
from greensched_core.cluster_settings import PowerAssumptions
from greensched_core.objects import NodeObject
from greensched_operator.planning.cluster_state import ClusterNodes

SLOW, FAST = "xeon-e5-2670-2s", "epyc-9654-1s"


def node(name: str, hardware: str, gpus: int = 0, *, is_cordoned: bool = False) -> NodeObject:
    """Return a node as the API server writes it."""
    room: dict[str, Any] = {"cpu": "32", "memory": "128Gi"}
    if gpus:
        room["nvidia.com/gpu"] = str(gpus)
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {labels.POWER_MODEL: hardware}},
            "spec": {"unschedulable": is_cordoned},
            "status": {
                "allocatable": room,
                "capacity": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        },
        NodeObject,
    )


@pytest.fixture
def changes() -> list[str]:
    """Return a list that gets an entry for each change of the slowest speed."""
    return []


@pytest.fixture
def nodes(changes: list[str]) -> ClusterNodes:
    """Return a cluster that nobody has listed yet."""
    return ClusterNodes({}, PowerAssumptions(0.5, 0.6, 1.2), lambda: changes.append("changed"))


def listed(nodes: ClusterNodes, *items: NodeObject) -> None:
    """List these nodes, and no others."""
    nodes.list_began()
    for item in items:
        nodes.upsert(item)
    nodes.list_ended()


def test_without_nodes_it_is_the_reference_node(nodes: ClusterNodes, changes: list[str]) -> None:
    listed(nodes)
    assert nodes.slowest_speed(0.0) == nodes.slowest_speed(1.0) == 1.0
    assert changes == []


def test_a_list_is_judged_as_a_whole(nodes: ClusterNodes, changes: list[str]) -> None:
    listed(nodes, *(node(f"old-{place}", SLOW) for place in range(3)))
    assert nodes.slowest_speed(0.0) < 1.0
    assert changes == ["changed"]


def test_it_may_be_faster_than_the_reference_node(nodes: ClusterNodes) -> None:
    listed(nodes, node("new", FAST))
    assert nodes.slowest_speed(0.0) > 1.0


def test_work_with_gpus_runs_on_nodes_that_have_them(nodes: ClusterNodes) -> None:
    listed(nodes, node("old", SLOW), node("new", FAST, gpus=4))
    assert nodes.slowest_speed(0.0) < 1.0 < nodes.slowest_speed(1.0)


def test_where_no_node_has_gpus_any_may_get_them(nodes: ClusterNodes) -> None:
    listed(nodes, node("old", SLOW))
    assert nodes.slowest_speed(1.0) == nodes.slowest_speed(0.0) < 1.0


@pytest.mark.parametrize("how", ["deleted", "cordoned"])
def test_a_node_that_gets_no_work_no_longer_counts(
    how: str, nodes: ClusterNodes, changes: list[str]
) -> None:
    listed(nodes, node("old", SLOW), node("new", FAST))
    if how == "deleted":
        nodes.remove(node("old", SLOW))
    else:
        nodes.upsert(node("old", SLOW, is_cordoned=True))
    assert nodes.slowest_speed(0.0) > 1.0
    assert changes == ["changed", "changed"]


def test_other_changes_of_nodes_judge_nothing_again(
    nodes: ClusterNodes, changes: list[str]
) -> None:
    listed(nodes, node("old", SLOW))
    nodes.upsert(node("old", SLOW))
    nodes.upsert(node("new", FAST))
    assert changes == ["changed"]
