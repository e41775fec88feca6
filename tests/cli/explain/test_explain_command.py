import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

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


def test_a_decision_is_reported_with_its_reason_its_weights_and_its_bundle(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    address = replica({PATH: {"decisions": [decision]}})
    done = greensched("explain", "web", "--address", address)
    assert done.returncode == 0, done.stderr
    assert "default/web: 4 cores, 1 GiB, 0 GPUs for 1h" in done.stdout
    assert "clean was the cheapest of 2." in done.stdout
    weights = "weights cost 1, carbon 1, performance 0.1 of GreenPolicy team/default"
    assert f"onnx (bundle prior), {weights} over" in done.stdout
    assert done.stdout.index("\nclean ") < done.stdout.index("\ndirty ")


def test_the_risk_taken_with_held_work_is_told_with_its_target(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    address = replica({PATH: {"decisions": [decision]}})
    assert "risk" not in greensched("explain", "web", "--address", address).stdout
    decision |= {"deadline": 1_800_000_000.0, "onTimeTargetShare": 0.995}
    for each, share in zip(decision["candidates"], (0.0034, 0.41), strict=True):
        each["lateShare"] = share
    address = replica({PATH: {"decisions": [decision]}})
    assert (
        "risk: 0.34 % of runs that begin then on clean end after the deadline, "
        "2027-01-15 08:00:00 UTC; the policy's target is at most 0.5 %\n"
    ) in greensched("explain", "web", "--address", address).stdout


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        ((None, None), ""),
        (("assumed", "assumed"), "watts of GPUs: assumed\n"),
        (("measured", "assumed"), "as measured on GPUs of that kind on 1 node, assumed on 1\n"),
        (("measured", "measured"), "as measured on GPUs of that kind on 2 nodes\n"),
    ],
)
def test_for_a_pod_with_gpus_the_source_of_their_watts_is_reported(
    greensched: Run, replica: Replica, decision: dict[str, Any],
    sources: tuple[str | None, str | None], words: str,
) -> None:  # fmt: skip
    for each, source in zip(decision["candidates"], sources, strict=True):
        each["gpuShareFrom"] = source
    done = greensched("explain", "web", "--address", replica({PATH: {"decisions": [decision]}}))
    assert words in done.stdout
    assert ("watts of GPUs" in done.stdout) is bool(words)


@pytest.mark.parametrize("text", ["[/x]", "[bold]", "[red on blue", ":smile:", "a\x1b[31mb"])
def test_what_users_write_is_printed_and_never_obeyed(
    greensched: Run, replica: Replica, decision: dict[str, Any], text: str
) -> None:
    decision["pod"]["faults"] = [f"annotation {text}"]
    done = greensched("explain", "web", "--address", replica({PATH: {"decisions": [decision]}}))
    assert done.returncode == 0, done.stderr
    assert f"not understood: annotation {text.replace(chr(27), '?')}" in done.stdout


def test_what_is_not_known_is_reported_as_no_data(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    gaps = {**without(decision), "decidedAt": decision["decidedAt"]}
    done = greensched("explain", "web", "--address", replica({PATH: {"decisions": [gaps]}}))
    assert done.returncode == 0, done.stderr
    assert "no data" in done.stdout


def test_a_run_of_an_instant_is_not_reported_as_nothing(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    decision["pod"]["runtimeSeconds"] = 0.025
    decision["candidates"][0] |= {"energyJoules": 0.36, "carbonGrams": 3.3e-6, "cost": 4.5e-9}
    decision["candidates"][1] |= {"energyJoules": 0.36, "carbonGrams": 33e-6, "cost": 4.5e-9}
    done = greensched("explain", "web", "--address", replica({PATH: {"decisions": [decision]}}))
    assert "0 GPUs for 25ms" in done.stdout
    for told in ("100 µWh", " 3.3 µg", "33 µg", "0.0000000045 EUR"):
        assert told in done.stdout


def test_json_holds_what_the_replica_said(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    address = replica({PATH: {"decisions": [decision]}})
    done = greensched("explain", "web", "-o", "json", "--address", address)
    assert json.loads(done.stdout) == [{**decision, "replica": address}]


def test_yaml_holds_the_same(greensched: Run, replica: Replica, decision: dict[str, Any]) -> None:
    address = replica({PATH: {"decisions": [decision]}})
    done = greensched("explain", "web", "-o", "yaml", "--address", address)
    assert yaml.safe_load(done.stdout) == [{**decision, "replica": address}]


def kubeconfig(path: Path, **namespaces: str) -> str:
    """Write a kubeconfig whose contexts name a namespace each, the first one in use."""
    contexts = [{"name": name, "context": {"cluster": "c", "user": "u", "namespace": namespace}}
                for name, namespace in namespaces.items()]  # fmt: skip
    told = {"apiVersion": "v1", "kind": "Config", "contexts": contexts,
            "current-context": next(iter(namespaces)),
            "clusters": [{"name": "c", "cluster": {"server": "http://localhost:1"}}],
            "users": [{"name": "u", "user": {}}]}  # fmt: skip
    path.write_text(yaml.safe_dump(told))
    return str(path)


@pytest.mark.parametrize(
    ("options", "namespace"),
    [
        pytest.param((), "ml", id="of-the-context-in-use"),
        pytest.param(("--context", "other"), "batch", id="of-the-context-that-is-named"),
        pytest.param(("-n", "web"), "web", id="of-the-option"),
    ],
)
def test_the_namespace_is_the_one_that_kubectl_would_take(
    greensched: Run, replica: Replica, decision: dict[str, Any],
    tmp_path: Path, options: tuple[str, ...], namespace: str,
) -> None:  # fmt: skip
    config = kubeconfig(tmp_path / "config", used="ml", other="batch")
    address = replica({f"/v1/decisions/{namespace}/web": {"decisions": [decision]}})
    asked = ("explain", "web", *options, "--address", address, "--kubeconfig", config)
    done = greensched(*asked)
    assert done.returncode == 0, done.stderr


def test_an_address_is_asked_whatever_the_kubeconfig_is_like(
    greensched: Run, replica: Replica, decision: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[: no yaml")
    address = replica({PATH: {"decisions": [decision]}})
    config = str(tmp_path / "config")
    done = greensched("explain", "web", "--address", address, "--kubeconfig", config)
    assert done.returncode == 0, done.stderr


def test_an_unknown_pod_is_an_empty_list_in_json_and_a_sentence_beside_it(
    greensched: Run, replica: Replica
) -> None:
    done = greensched("explain", "nobody", "-o", "json", "--address", replica({}))
    assert done.returncode == 1
    assert json.loads(done.stdout) == []
    assert "No replica remembers a decision on default/nobody" in done.stderr
    assert "could not be read: no kubeconfig" in done.stderr


@pytest.mark.parametrize(("outcome", "expected", "relative", "told"), [
    pytest.param({"state": "bound", "node": "clean"}, "clean", 1.4, "went to clean, as expected",
                 id="as-expected"),
    pytest.param({"state": "bound", "node": "dirty"}, "clean", 1.4,
                 "expected on clean, went to dirty", id="elsewhere"),
    pytest.param({"state": "bound", "node": "dirty"}, "clean", 0.605,
                 "went to dirty, as cheap as clean", id="elsewhere-at-the-same-cost"),
    pytest.param({"state": "bound", "node": "dirty"}, None, 0.6,
                 "all nodes scored the same, went to dirty", id="no-favourite"),
    pytest.param({"state": "not seen bound"}, "clean", 1.4, "expected on clean, not seen bound",
                 id="not-seen-bound"),
    pytest.param({"state": "answered too late", "node": "dirty", "boundAt": None}, "clean", 1.4,
                 "expected on clean, but the answer came too late: kube-scheduler placed the pod "
                 "on dirty without our scores", id="too-late"),
])  # fmt: skip
def test_the_outcome_is_reported_in_words(
    greensched: Run, replica: Replica, decision: dict[str, Any],
    outcome: dict[str, Any], expected: str | None, relative: float, told: str,
) -> None:  # fmt: skip
    decision |= {"outcome": outcome, "expectedNode": expected}
    decision["candidates"][1]["relativeCost"] = relative
    done = greensched("explain", "web", "--address", replica({PATH: {"decisions": [decision]}}))
    assert done.returncode == 0, done.stderr
    assert f"); {told}\n" in done.stdout


@pytest.mark.parametrize(("relative", "told"), [(1.4, "1 dearer node"), (0.605, "1 other node")])
def test_nodes_that_are_not_shown_are_called_dearer_only_when_they_are(
    greensched: Run, replica: Replica, decision: dict[str, Any], relative: float, told: str
) -> None:
    decision["candidates"][1]["relativeCost"] = relative
    address = replica({PATH: {"decisions": [decision]}})
    done = greensched("explain", "web", "--rows", "1", "--address", address)
    assert f"… and {told} (--rows 2 prints them)" in done.stdout


def test_one_is_reported_in_the_singular(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    decision["pod"] |= {"cpuCores": 1.0, "gpus": 1.0}
    done = greensched("explain", "web", "--address", replica({PATH: {"decisions": [decision]}}))
    assert "default/web: 1 core, 1 GiB, 1 GPU for 1h" in done.stdout


def test_an_address_needs_no_scheme(
    greensched: Run, replica: Replica, decision: dict[str, Any]
) -> None:
    address = replica({PATH: {"decisions": [decision]}})
    done = greensched("explain", "web", "--address", address.removeprefix("http://"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("address", "told"), [
    pytest.param("localhost:1", "does it listen?", id="nobody-listens"),
    pytest.param("ftp://localhost:1", "--address is http://host:port", id="another-scheme"),
])  # fmt: skip
def test_who_cannot_be_asked_is_not_said_to_remember_nothing(
    greensched: Run, address: str, told: str
) -> None:
    done = greensched("explain", "web", "--address", address)
    assert (done.returncode, done.stdout) == (1, "")
    assert "No replica could be asked about default/web: " in done.stderr and told in done.stderr
    assert "remembers" not in done.stderr


def test_a_server_that_is_no_extender_is_reported(greensched: Run, replica: Replica) -> None:
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


def test_nodes_are_listed_with_the_meter_that_gave_their_watts(
    greensched: Run, replica: Replica
) -> None:
    node = {
        "name": "n1", "zone": "DE", "hardware": "m5", "curveSource": "catalogue", "cpuCores": 8.0,
        "cpuUtilisation": 0.25, "gpus": 0, "pods": 3, "powerWatts": 210.0,
        "powerMeter": "scaphandre-psys", "idleWatts": 50.0, "peakWatts": 325.0,
        "carbonGramsPerKwh": 380.0, "pricePerMwh": 92.0,
    }  # fmt: skip
    nodes = [node, {**node, "name": "n2", "powerMeter": None}]
    done = greensched("nodes", "--address", replica({"/v1/nodes": {"nodes": nodes}}))
    assert done.returncode == 0, done.stderr
    head, first, second = (" ".join(line.split()) for line in done.stdout.splitlines())
    assert "WATTS METER" in head
    assert "210 scaphandre-psys" in first
    assert "210 –" in second
