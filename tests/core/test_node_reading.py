import json
from typing import Any

import msgspec
import pytest

from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.state import Node

BUDGET = "greensched.io/power-budget-watts"
GRID = {"greensched.io/grid-zone": "DE", "greensched.io/power-model": "epyc-7763-1s"}


def read(
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    allocatable: dict[str, str] | None = None,
    zone_map: dict[str, str] | None = None,
) -> tuple[Node, tuple[str, ...]]:
    item: dict[str, Any] = {
        "metadata": {"name": "n", "labels": labels, "annotations": annotations},
        "status": {"allocatable": allocatable or {"cpu": "128", "memory": "256Gi"}},
    }
    decoded = msgspec.json.decode(json.dumps(item).encode(), type=NodeObject)
    return NodeReader(PowerCatalogue(), zone_map or {}).read(decoded)


def test_a_labelled_node_is_read_without_faults() -> None:
    node, faults = read(
        GRID | {"greensched.io/pue": "1.1"}, {"greensched.io/power-budget-watts": "500"}
    )
    assert faults == ()
    assert (node.zone, node.hardware, node.curve_source) == ("DE", "epyc-7763-1s", "label")
    assert (node.pue, node.power_budget_w, node.cpu_cores) == (1.1, 500.0, 128.0)


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        ({"topology.kubernetes.io/region": "europe-west3"}, "DE"),
        ({"topology.kubernetes.io/zone": "eu-a", "topology.kubernetes.io/region": "x"}, "FR"),
        ({"topology.kubernetes.io/region": "europe-west3", "greensched.io/grid-zone": "PL"}, "PL"),
        ({}, ""),
    ],
    ids=["region", "zone-before-region", "label-before-map", "nobody-said"],
)
def test_the_grid_zone_comes_from_the_label_or_the_map(labels: dict[str, str], zone: str) -> None:
    node, faults = read(labels, zone_map={"europe-west3": "DE", "eu-a": "FR"})
    assert node.zone == zone
    assert any("grid zone unknown" in fault for fault in faults) == (zone == "")


@pytest.mark.parametrize(
    ("labels", "annotations", "allocatable", "said"),
    [
        pytest.param({"greensched.io/pue": "0.9"}, {}, None, "pue", id="pue-below-1"),
        pytest.param({"greensched.io/pue": "low"}, {}, None, "pue", id="pue-no-number"),
        pytest.param({}, {"greensched.io/power-budget-watts": "-1"}, None, "budget", id="negative"),
        pytest.param(
            {}, {"greensched.io/power-budget-watts": "inf"}, None, "budget", id="infinite"
        ),
        pytest.param({}, {"greensched.io/power-curve-watts": "1,2"}, None, "curve", id="curve"),
        pytest.param({}, {}, {"cpu": "1e3Ki", "memory": "1Gi"}, "1e3Ki", id="quantity"),
    ],
)
def test_what_cannot_be_read_is_a_fault_and_counts_as_not_said(
    labels: dict[str, str],
    annotations: dict[str, str],
    allocatable: dict[str, str] | None,
    said: str,
) -> None:
    node, faults = read(GRID | labels, annotations, allocatable)
    assert any(said in fault for fault in faults)
    assert (node.pue, node.power_budget_w) == (None, None)


def test_long_annotations_of_a_node_are_reported_in_short() -> None:
    _, faults = read(
        {},
        {
            "greensched.io/power-budget-watts": "x" * 250_000,
            "greensched.io/power-curve-watts": "y" * 250_000,
        },
        {"cpu": "z" * 250_000, "memory": "1Gi"},
    )
    assert len(faults) >= 3
    assert max(map(len, faults)) < 250
