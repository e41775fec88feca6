import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from greensched_policies.encoding.observation import CONTEXT_FEATURES, NODE_FEATURES
from greensched_policies.learned.bundle import MAX_GRAPH_BYTES, load_bundle
from greensched_policies.learned.card import SHIPPED_PRIOR, BundleError, describe_card
from greensched_policies.learned.graph_file import read_graph_facts
from greensched_policies.learned.protobuf import NotOnnx
from greensched_policies.rules.where import weighted_cost
from greensched_train.export import export_prior

PRIOR = load_bundle(SHIPPED_PRIOR)
GRAPH = (SHIPPED_PRIOR / "where.onnx").read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copied(tmp_path)


def copied(folder: Path) -> Path:
    for path in SHIPPED_PRIOR.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


def change_card(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    card = json.loads((folder / "card.json").read_text())
    change(card)
    (folder / "card.json").write_text(json.dumps(card))


def replace_graph(folder: Path, graph: bytes) -> None:
    """Put another graph there whose hash the card knows: only its contents are wrong."""
    (folder / "where.onnx").write_bytes(graph)
    digest = hashlib.sha256(graph).hexdigest()
    change_card(folder, lambda card: card["heads"]["where"].update(sha256=digest))


def changed_graph(change: Callable[[onnx.ModelProto], object]) -> bytes:
    model = onnx.load_from_string(GRAPH)
    change(model)
    return bytes(model.SerializeToString())


def with_weight(name: str, change: Callable[[np.ndarray], np.ndarray]) -> bytes:
    def apply(model: onnx.ModelProto) -> None:
        for tensor in model.graph.initializer:
            if tensor.name == name:
                value = change(numpy_helper.to_array(tensor).copy())
                tensor.CopyFrom(numpy_helper.from_array(value, name))

    return changed_graph(apply)


def poisoned(value: np.ndarray) -> np.ndarray:
    value.flat[0] = np.nan
    return value


def test_the_shipped_prior_loads_and_says_that_it_is_untrained() -> None:
    assert PRIOR.card.untrained
    assert PRIOR.card.evaluation == {}
    assert PRIOR.heads["where"].graph_bytes == len(GRAPH)


def test_exporting_again_gives_the_same_bytes(tmp_path: Path) -> None:
    export_prior(tmp_path)
    for name in ("where.onnx", "when.onnx", "how_fast.onnx", "card.json"):
        assert (tmp_path / name).read_bytes() == (SHIPPED_PRIOR / name).read_bytes()


@settings(deadline=None)
@given(
    batch=st.integers(1, 3),
    count=st.integers(1, 60),
    seed=st.integers(0, 2**32 - 1),
    weights=st.tuples(*[st.floats(0.0, 10.0, width=32)] * 3),
)
def test_graph_and_rule_agree(
    batch: int, count: int, seed: int, weights: tuple[float, float, float]
) -> None:
    rng = np.random.default_rng(seed)
    nodes = (rng.random((batch, count, len(NODE_FEATURES))) * 4.0 - 1.0).astype(np.float32)
    context = rng.random((batch, len(CONTEXT_FEATURES))).astype(np.float32)
    context[:, :3] = weights
    found = PRIOR.where(nodes, context)
    assert np.abs(found - weighted_cost(nodes, context)).max() <= 1e-5


def test_weights_that_are_all_zero_prefer_nobody() -> None:
    nodes = np.ones((1, 3, len(NODE_FEATURES)), dtype=np.float32)
    context = np.zeros((1, len(CONTEXT_FEATURES)), dtype=np.float32)
    assert PRIOR.where(nodes, context).tolist() == [[0.0, 0.0, 0.0]]
    assert weighted_cost(nodes, context).tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            lambda card: card.update(encoding_version=1), "encoding version 1", id="encoding"
        ),
        pytest.param(lambda card: card.pop("seeds"), "seeds: Field required", id="field-missing"),
        pytest.param(lambda card: card.update(sead=1), "sead: Extra inputs", id="misspelt"),
        pytest.param(lambda card: card["heads"].clear(), "`where` is missing", id="no-head"),
        pytest.param(
            lambda card: card["heads"].update({"how-fast": card["heads"].pop("how_fast")}),
            r"there is no head 'how-fast' \(close: how_fast\); heads are where, when, how_fast",
            id="misspelt-head",
        ),
        pytest.param(
            lambda card: card["heads"]["where"].update(sha256="0" * 64), "sha256 is", id="hash"
        ),
        pytest.param(
            lambda card: card["heads"]["where"].update(parameters=7), "card says 7", id="parameters"
        ),
        pytest.param(
            lambda card: card["heads"]["where"]["sample"].update(relative_cost=[[9, 9, 9, 9]]),
            "do not belong together",
            id="sample",
        ),
        pytest.param(
            lambda card: card["heads"]["where"]["sample"].update(nodes=[[[1.0] * 4]]),
            "sample has shapes",
            id="sample-of-another-shape",
        ),
        pytest.param(
            lambda card: card["heads"]["where"]["sample"].update(nodes=[[[1.0], [1.0, 2.0]]]),
            "sample is not an array",
            id="sample-ragged",
        ),
    ],
)
def test_a_wrong_card_is_refused(
    folder: Path, change: Callable[[dict[str, Any]], object], message: str
) -> None:
    change_card(folder, change)
    with pytest.raises(BundleError, match=message) as refusal:
        load_bundle(folder)
    assert str(folder) in str(refusal.value)


def test_a_card_that_is_no_json_is_refused(folder: Path) -> None:
    (folder / "card.json").write_text("{")
    with pytest.raises(BundleError, match="Invalid JSON"):
        load_bundle(folder)


@pytest.mark.parametrize("name", ["where.onnx", "card.json"])
def test_a_missing_file_is_refused(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(BundleError, match=f"{name}: cannot be read"):
        load_bundle(folder)


def external(model: onnx.ModelProto) -> None:
    tensor = model.graph.initializer[-1]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")


def rename_feature_axis(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 15


def fixed_candidates(model: onnx.ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 8


def subgraph(model: onnx.ModelProto) -> None:
    body = helper.make_graph([], "body", [], [])
    model.graph.node[0].attribute.append(helper.make_attribute("body", body))


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        pytest.param(b"", "not an ONNX graph", id="empty"),
        pytest.param(b"not a graph", "not an ONNX graph", id="text"),
        pytest.param(GRAPH[: len(GRAPH) // 2], "not an ONNX graph", id="cut-off"),
        pytest.param(bytes(MAX_GRAPH_BYTES + 1), "larger than", id="too-large"),
        pytest.param(with_weight("net.2.biases", poisoned), "NaN.*net.2.bias", id="nan"),
        pytest.param(
            with_weight("net.1.biases", lambda bias: bias + np.float32(np.inf)),
            "infinity.*net.1.bias",
            id="infinity",
        ),
        pytest.param(
            changed_graph(lambda model: setattr(model.graph.initializer[0], "data_type", 16)),
            "dense float32",
            id="type-not-allowed",
        ),
        pytest.param(changed_graph(external), "another file", id="external-data"),
        pytest.param(changed_graph(subgraph), "subgraphs", id="control-flow"),
        pytest.param(
            changed_graph(lambda model: setattr(model.graph.node[0], "domain", "com.acme")),
            "com.acme",
            id="foreign-domain",
        ),
        pytest.param(
            changed_graph(lambda model: setattr(model.graph.node[0], "op_type", "RandomNormal")),
            "RandomNormal",
            id="operator-not-allowed",
        ),
        pytest.param(
            # It brought onnxruntime 1.31 down.
            changed_graph(lambda model: model.graph.node[2].input.__setitem__(1, "")),
            "Max.* lack an input",
            id="input-left-out",
        ),
        pytest.param(
            changed_graph(lambda model: setattr(model.graph.node[0], "op_type", "Exp")),
            "onnxruntime cannot load",
            id="broken-graph",
        ),
        pytest.param(changed_graph(rename_feature_axis), "needed|cannot load", id="other-features"),
        pytest.param(changed_graph(fixed_candidates), "None: dynamic", id="fixed-candidates"),
        pytest.param(
            with_weight("net.3.biases", lambda bias: bias + np.float32(1.0)),
            "do not belong together",
            id="other-weights",
        ),
    ],
)
def test_a_wrong_graph_is_refused(folder: Path, graph: bytes, message: str) -> None:
    replace_graph(folder, graph)
    with pytest.raises(BundleError, match=message) as refusal:
        load_bundle(folder)
    assert "where.onnx" in str(refusal.value)


def torn_attribute(model: onnx.ModelProto) -> bytes:
    """Give the first node an attribute whose packed FLOATS are three bytes long."""
    attribute = b"\x0a\x01a" + b"\x3a\x03abc"  # name "a"; field 7, length 3
    node = model.graph.node[0].SerializeToString() + b"\x2a" + bytes([len(attribute)]) + attribute
    rest = onnx.GraphProto()
    rest.CopyFrom(model.graph)
    del rest.node[0]
    graph = b"\x0a" + _varint(len(node)) + node + rest.SerializeToString()
    outer = onnx.ModelProto()
    outer.CopyFrom(model)
    outer.ClearField("graph")
    return bytes(outer.SerializeToString() + b"\x3a" + _varint(len(graph)) + graph)


def _varint(number: int) -> bytes:
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def test_an_attribute_of_three_bytes_is_refused(folder: Path) -> None:
    replace_graph(folder, torn_attribute(onnx.load_from_string(GRAPH)))
    with pytest.raises(BundleError, match="broken number of bytes"):
        load_bundle(folder)


def test_a_name_that_is_no_text_is_refused(folder: Path) -> None:
    replace_graph(folder, GRAPH.replace(b"context", b"\xff\xfentext"))
    with pytest.raises(BundleError, match=r"where\.onnx|cannot be loaded"):
        load_bundle(folder)


def test_for_a_layout_with_the_features_last_the_message_says_which_one_is_needed(
    folder: Path,
) -> None:
    def features_last(model: onnx.ModelProto) -> None:
        batch, features, count = model.graph.input[0].type.tensor_type.shape.dim
        features.ClearField("value")
        features.dim_param = "n"
        count.ClearField("value")
        count.dim_value = 16
        batch.dim_param = "b"

    replace_graph(folder, changed_graph(features_last))
    with pytest.raises(BundleError, match=r"layout is nodes \[B,22,N\]|cannot load"):
        load_bundle(folder)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(GRAPH) - 1), st.integers(0, 255)), max_size=4))
def test_whatever_bytes_are_flipped_only_a_refusal_comes_of_it(
    flips: list[tuple[int, int]],
) -> None:
    changed = bytearray(GRAPH)
    for at, value in flips:
        changed[at] = value
    with TemporaryDirectory() as name:
        folder = copied(Path(name))
        replace_graph(folder, bytes(changed))
        try:
            load_bundle(folder, self_test_limit_s=60.0)
        except BundleError:
            pass


def test_a_slow_graph_is_refused(folder: Path) -> None:
    ticks = iter(range(1000))
    with pytest.raises(BundleError, match=r"5000 candidates take 1000.0 ms"):
        load_bundle(folder, monotonic=lambda: float(next(ticks)))


@given(st.binary(max_size=300))
def test_no_bytes_upset_the_reader(junk: bytes) -> None:
    try:
        read_graph_facts(junk)
    except NotOnnx:
        pass


@given(st.integers(0, len(GRAPH) - 1), st.integers(0, 255))
def test_no_flipped_byte_upsets_the_reader(at: int, value: int) -> None:
    changed = GRAPH[:at] + bytes([value]) + GRAPH[at + 1 :]
    try:
        read_graph_facts(changed)
    except NotOnnx:
        pass


def test_a_bundle_is_described_in_words() -> None:
    lines = describe_card(SHIPPED_PRIOR)
    assert lines["state"] == "untrained: the rule it starts from"
    assert lines["where: parameters"] == str(PRIOR.card.heads["where"].parameters)
    assert all(lines.values())
