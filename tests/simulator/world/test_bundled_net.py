"""A GreenPolicy whose bundle chooses starts: the net is read from the file that users apply."""

import hashlib
import json
import shutil
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml

from greensched_core.errors import BadInput
from greensched_policies.learned.card import SHIPPED_PRIOR
from greensched_policies.learned.heads import WHEN
from greensched_policies.learned.known_nets import known_net
from greensched_policies.library.nets import CandidateNet, packed
from greensched_simulator.scenario.bundled_net import shipped_net
from greensched_simulator.scenario.policy_file import PolicyFromFile, read_policy_file
from greensched_simulator.world.scenario_loading import load_scenario
from greensched_simulator.world.world import build_world

POLICY = {
    "apiVersion": "greensched.io/v1alpha1",
    "kind": "GreenPolicy",
    "metadata": {"name": "default", "namespace": "team"},
    "spec": {"mode": "enforce", "whenPolicy": "onnx", "bundle": {"configMapName": "trained"}},
}
GALLERY = Path(__file__).resolve().parents[3] / "examples" / "scenarios"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A copy of the shipped bundle that a test may change."""
    return Path(shutil.copytree(SHIPPED_PRIOR, tmp_path / "bundle"))


def config_map(bundle: Path, name: str = "trained") -> dict[str, Any]:
    """Return a bundle as a ConfigMap, as kubectl makes it."""
    graphs = {each.name: b64encode(each.read_bytes()).decode() for each in bundle.glob("*.onnx")}
    card = {"card.json": (bundle / "card.json").read_text()}
    return {
        "kind": "ConfigMap", "metadata": {"name": name}, "data": card, "binaryData": graphs,
    }  # fmt: skip


def read(folder: Path, *objects: dict[str, Any]) -> PolicyFromFile:
    """Return the policy of a file with these objects."""
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump_all(objects))
    return read_policy_file(path)


def change_card(bundle: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the heads of a bundle's card."""
    card = json.loads((bundle / "card.json").read_text())
    change(card["heads"])
    (bundle / "card.json").write_text(json.dumps(card))


def are_alike(one: CandidateNet | None, other: CandidateNet | None) -> bool:
    """Return whether both are the same net."""
    assert one is not None
    assert other is not None
    first, second = packed(one), packed(other)
    same = np.array_equal(first.sizes, second.sizes)
    return same and np.array_equal(first.numbers, second.numbers)


def test_without_a_bundle_the_shipped_one_chooses_starts(tmp_path: Path) -> None:
    spec = {"mode": "enforce", "whenPolicy": "onnx"}
    found = read(tmp_path, {**POLICY, "spec": spec})
    wanted = known_net((SHIPPED_PRIOR / "when.onnx").read_bytes(), WHEN)
    assert are_alike(found.when_net, wanted)
    assert found.notes == ()


def test_the_bundle_is_the_config_map_of_that_name_beside_the_policy(
    bundle: Path, tmp_path: Path
) -> None:
    other = {"kind": "ConfigMap", "metadata": {"name": "other"}, "data": {"a": "b"}}
    odd = {"kind": "ConfigMap", "metadata": []}
    found = read(tmp_path, odd, other, config_map(bundle), POLICY)
    assert are_alike(found.when_net, shipped_net())


def test_a_where_head_is_told_to_be_left_out(bundle: Path, tmp_path: Path) -> None:
    (note,) = read(tmp_path, config_map(bundle), POLICY).notes
    assert "`where` head of ConfigMap trained is not simulated" in note
    change_card(bundle, lambda heads: heads.pop("where"))
    assert read(tmp_path, config_map(bundle), POLICY).notes == ()


def test_a_scenario_tells_what_of_its_policy_is_not_simulated(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump_all([config_map(bundle), POLICY]))
    text = (GALLERY / "three-zones.yaml").read_text()
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(text.replace("../10-enforcing-policy.yaml", "policy.yaml"))
    world = build_world(load_scenario(scenario))
    assert world.when_net is not None
    assert any("`where` head of ConfigMap trained" in note for note in world.notes)


def test_a_bundle_that_the_file_does_not_hold_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"policy.yaml: spec.bundle names the ConfigMap trained"):
        read(tmp_path, POLICY)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"data": {}}, "ConfigMap trained holds no card.json", id="no-card"),
        pytest.param({"binaryData": {"when.onnx": "a"}}, "ConfigMap trained: ", id="no-base64"),
        pytest.param({"binaryData": {}}, "when.onnx", id="no-graph"),
        pytest.param({"data": ["card.json"]}, "ConfigMap trained: ", id="no-mapping"),
    ],
)
def test_a_config_map_that_is_no_bundle_is_refused(
    change: dict[str, Any], reason: str, bundle: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=reason):
        read(tmp_path, config_map(bundle) | change, POLICY)


def test_a_net_that_the_library_does_not_know_is_refused_with_the_reason(
    bundle: Path, tmp_path: Path
) -> None:
    model = onnx.load_from_string((bundle / "when.onnx").read_bytes())
    for node in model.graph.node:
        node.op_type = "Tanh" if node.op_type == "Relu" else node.op_type
    graph = bytes(model.SerializeToString())
    (bundle / "when.onnx").write_bytes(graph)
    own = {"sha256": hashlib.sha256(graph).hexdigest()}
    change_card(bundle, lambda heads: heads["when"].update(own))
    with pytest.raises(BadInput, match=r"cannot compute its when head \(Tanh is no layer"):
        read(tmp_path, config_map(bundle), POLICY)
