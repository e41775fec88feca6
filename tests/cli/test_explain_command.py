import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]
Replica = Callable[[dict[str, Any]], str]
PATH = "/v1/decisions/default/web"


def without(value: Any) -> Any:
    """The same JSON with null for every number of a candidate, a zone and the pod."""
    if isinstance(value, dict):
        return {key: without(each) for key, each in value.items()}
    if isinstance(value, list):
        return [without(each) for each in value]
    return None if isinstance(value, float) else value


def test_a_decision_is_told_with_its_reason_its_weights_and_its_bundle(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    address = replica({PATH: {"decisions": [decision]}})
    done = greensched("explain", "web", "--address", address)
    assert done.returncode == 0, done.stderr
    assert "default/web: 4 cores, 1 GiB, 0 GPUs for 1h" in done.stdout
    assert "clean was the cheapest of 2." in done.stdout
    assert "onnx (bundle prior), weights energy 1, carbon 1, performance 0.1" in done.stdout
    assert done.stdout.index(" clean ") < done.stdout.index(" dirty ")


@pytest.mark.parametrize("text", ["[/x]", "[bold]", "[red on blue", ":smile:", "a\x1b[31mb"])
def test_what_users_write_is_printed_and_never_obeyed(
    greensched: Run, replica: Replica, decision: dict[str, Any], text: str
) -> None:
    decision["pod"]["faults"] = [f"annotation {text}"]
    done = greensched("explain", "web", "--address", replica({PATH: {"decisions": [decision]}}))
    assert done.returncode == 0, done.stderr
    assert f"not understood: annotation {text.replace(chr(27), '?')}" in done.stdout


def test_what_is_not_known_is_told_as_no_data(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    gaps = {**without(decision), "decidedAt": decision["decidedAt"]}
    done = greensched("explain", "web", "--address", replica({PATH: {"decisions": [gaps]}}))
    assert done.returncode == 0, done.stderr
    assert "no data" in done.stdout


def test_a_run_of_an_instant_is_not_told_as_nothing(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    decision["pod"]["runtimeSeconds"] = 0.025
    decision["candidates"][0] |= {"energyJoules": 0.36, "carbonGrams": 3.3e-6, "cost": 4.5e-9}
    done = greensched("explain", "web", "--address", replica({PATH: {"decisions": [decision]}}))
    assert "0 GPUs for 25ms" in done.stdout
    assert all(figure in done.stdout.split() for figure in ("0.0001", "3.3e-06", "4.5e-09"))


def test_json_holds_what_the_replica_said(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    address = replica({PATH: {"decisions": [decision]}})
    done = greensched("explain", "web", "--json", "--address", address)
    assert json.loads(done.stdout) == [{**decision, "replica": address}]


def test_an_unknown_pod_is_an_empty_list_in_json_and_a_sentence_beside_it(
    greensched: Run, replica: Replica
) -> None:
    done = greensched("explain", "nobody", "--json", "--address", replica({}))
    assert done.returncode == 1
    assert json.loads(done.stdout) == []
    assert "No replica remembers a decision on default/nobody" in done.stderr


def test_a_server_that_is_no_extender_is_told_of(greensched: Run, replica: Replica) -> None:
    done = greensched("explain", "web", "--address", replica({PATH: ["hello"]}))
    assert (done.returncode, done.stdout) == (1, "")
    assert "does not answer like an extender" in done.stderr


def test_nobody_at_the_address_is_one_line(greensched: Run) -> None:
    done = greensched("nodes", "--address", "http://127.0.0.1:1")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_nodes_are_listed_with_gaps_and_faults(greensched: Run, replica: Replica) -> None:
    node = {
        "name": "n1", "zone": None, "hardware": "a [/b] machine", "curveSource": "default",
        "cpuCores": 16.0, "cpuUtilisation": None, "gpus": 0, "pods": 3, "powerWatts": None,
        "idleWatts": 50.0, "peakWatts": 150.0, "carbonGramsPerKwh": None, "pricePerMwh": None,
        "faults": ["label [/x]: bad"],
    }  # fmt: skip
    done = greensched("nodes", "--address", replica({"/v1/nodes": {"nodes": [node]}}))
    assert done.returncode == 0, done.stderr
    assert "a [/b] machine" in done.stdout
    assert "n1: label [/x]: bad" in done.stdout
    assert "no data" in done.stdout
