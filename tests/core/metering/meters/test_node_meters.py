"""What each meter says of a node, and whose word counts."""

import pytest

from greensched_core.metering.node_readings import node_watts
from greensched_core.metering.prometheus import Sample

TAKEN_AT = 1795000000.123


def gauge(value: float, **labels: str) -> Sample:
    return Sample(labels, value, TAKEN_AT)


def test_our_own_meter_wins_and_sees_the_gpus() -> None:
    samples = {
        "greensched": [gauge(500.0, node="n1")],
        "kepler-cpu": [gauge(100.0, node="n1", zone="package")],
        "dcgm": [gauge(200.0, node="n1", UUID="a")],
    }
    assert {node: it.value for node, it in node_watts(samples).items()} == {"n1": 500.0}


def test_the_platform_zone_counts_only_without_packages_and_then_alone() -> None:
    samples = {
        "kepler-cpu": [gauge(300.0, node="n1", zone="psys")],
        "dcgm": [gauge(200.0, node="n1", UUID="a")],
    }
    assert node_watts(samples)["n1"].value == 300.0


@pytest.mark.parametrize("value", [0.0, float("nan"), float("inf"), -1.0])
def test_a_counter_that_stands_still_is_no_sample(value: float) -> None:
    samples = {
        "kepler-cpu": [gauge(value, node="n1", zone="package")],
        "scaphandre": [gauge(90e6, node="n1")],
    }
    assert node_watts(samples)["n1"].source == "scaphandre"


def test_scaphandre_tells_which_hosts_are_whole_platforms() -> None:
    samples = {
        "scaphandre": [
            gauge(210e6, node="n1", value_source="powercap_rapl_psys"),
            gauge(90e6, node="n2", value_source="powercap_rapl_pkg"),
            gauge(80e6, node="n3"),
        ],
        "dcgm": [gauge(200.0, node=node, UUID=node) for node in ("n1", "n2")],
    }
    watts = {node: (it.value, it.source) for node, it in node_watts(samples).items()}
    assert watts == {
        "n1": (210.0, "scaphandre-psys"),  # the GPUs are in it
        "n2": (290.0, "scaphandre+dcgm"),
        "n3": (80.0, "scaphandre"),
    }


def test_a_meter_scraped_twice_counts_once() -> None:
    samples = {
        "scaphandre": [
            gauge(90e6, node="n1", instance="10.0.0.1:8080"),
            gauge(90e6, node="n1", instance="10.0.0.1:8081"),
        ]
    }
    assert node_watts(samples)["n1"].value == pytest.approx(90.0)


def test_an_address_stands_for_the_node_without_its_port() -> None:
    assert set(node_watts({"scaphandre": [gauge(9e6, instance="n1:8080")]})) == {"n1"}
