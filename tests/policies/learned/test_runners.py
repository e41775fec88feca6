"""What computes a bundle's graphs: the library where it can, with the same answers, and visibly."""

import hashlib
import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from greensched_policies.learned.bundle import Bundle, load_bundle
from greensched_policies.learned.card import SHIPPED_PRIOR
from greensched_policies.learned.heads import HEADS, WHEN, WHERE, Head
from greensched_policies.learned.known_nets import AnotherShape, known_net
from greensched_policies.learned.onnx_policy import OnnxPolicy, open_session
from greensched_policies.learned.runners import Runner, choose_runner
from greensched_policies.library.loading import address_of, function_for
from greensched_policies.library.nets import Float32s, KernelNet, packed
from tests.policies.learned.random_nets import NetShape, decision, graph_of

PRIOR = load_bundle(SHIPPED_PRIOR)
SMALL = NetShape([16, 16])
SHAPES = st.builds(
    NetShape,
    st.lists(st.integers(1, 40), min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)


def difference(found: Float32s, wanted: Float32s) -> float:
    """Return the largest difference, relative to the largest cost or 1."""
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max()) / max(1.0, float(np.abs(wanted).max()))


def in_onnxruntime(graph: bytes, head: Head) -> OnnxPolicy:
    return OnnxPolicy(open_session(graph), head.candidates_input)


@settings(deadline=None, max_examples=60)
@given(
    head=st.sampled_from(list(HEADS.values())),
    shape=SHAPES,
    batch=st.integers(1, 3),
    count=st.integers(1, 70),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_library_and_onnxruntime_answer_the_same_whatever_the_weights(
    head: Head, shape: NetShape, batch: int, count: int, seed: int
) -> None:
    graph, asked = graph_of(head, shape, seed), decision(head, batch, count, seed)
    found = KernelNet(known_net(graph, head))(*asked)
    assert difference(found, in_onnxruntime(graph, head)(*asked)) <= 1e-5


@pytest.mark.parametrize("count", [1, 15, 16, 17, 672, 5_000])
@pytest.mark.parametrize("name", HEADS)
def test_each_head_of_the_shipped_bundle_runs_in_the_library(name: str, count: int) -> None:
    head, run = HEADS[name], PRIOR.heads[name].run
    assert (run.runner, run.reason) == (Runner.KERNEL, "")
    asked = decision(head, 1, count, seed=count)
    graph = (SHIPPED_PRIOR / head.file).read_bytes()
    assert difference(run.policy(*asked), in_onnxruntime(graph, head)(*asked)) <= 1e-5


def test_a_processor_without_newer_instructions_gets_the_same_answers() -> None:
    """The library has the net a second time, for every processor of its kind."""
    graph, (candidates, context) = graph_of(WHERE, SMALL, seed=1), decision(WHERE, 1, 37, seed=1)
    sizes, numbers = packed(known_net(graph, WHERE))
    rows, costs = np.ascontiguousarray(candidates.transpose((0, 2, 1))), np.empty((1, 37), "f4")
    arrays = (address_of(each, np.float32) for each in (rows, context, costs))
    integers = [
        sizes.size, address_of(sizes, np.int64), numbers.size, address_of(numbers, np.float32),
        1, 37, *arrays,
    ]  # fmt: skip
    plain = function_for("rate_candidates", frozenset())
    assert plain(struct.pack(f"{len(integers)}q", *integers), b"") == 0
    assert difference(costs, in_onnxruntime(graph, WHERE)(candidates, context)) <= 1e-5


def test_a_value_that_is_no_number_is_not_hidden_by_relu() -> None:
    net = KernelNet(known_net(graph_of(WHERE, SMALL, seed=2), WHERE))
    candidates, context = decision(WHERE, 1, 20, seed=2)
    candidates[0, 3, 5] = np.nan
    assert np.isnan(net(candidates, context)[0]).nonzero()[0].tolist() == [3]


def test_candidates_of_another_head_are_an_error_that_the_guard_sees() -> None:
    net = KernelNet(known_net(graph_of(WHERE, SMALL, seed=3), WHERE))
    with pytest.raises(ValueError, match="the net has 22 and 15 features"):
        net(*decision(WHEN, 1, 4, seed=3))


def renamed(before: str, after: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        for node in model.graph.node:
            if node.op_type == before:
                node.op_type = after

    return change


def pooled(model: onnx.ModelProto) -> None:
    """Let each candidate see the mean of all, as pooling over the set does."""
    place = next(i for i, node in enumerate(model.graph.node) if node.output[0] == "net.2.own")
    mean = helper.make_node("ReduceMean", ["net.1"], ["pooled"], axes=[2], keepdims=1)
    both = helper.make_node("Add", ["net.1", "pooled"], ["net.1.with"])
    model.graph.node[place].input[1] = "net.1.with"
    model.graph.node.insert(place, both)
    model.graph.node.insert(place, mean)


def bundle_with(folder: Path, change: Callable[[onnx.ModelProto], None]) -> Bundle:
    """Return the shipped bundle with another graph of the `where` head."""
    for path in SHIPPED_PRIOR.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    model = onnx.load_from_string((folder / "where.onnx").read_bytes())
    change(model)
    graph = bytes(model.SerializeToString())
    (folder / "where.onnx").write_bytes(graph)
    card = json.loads((folder / "card.json").read_text())
    tensors = map(numpy_helper.to_array, model.graph.initializer)
    parameters = sum(each.size for each in tensors if each.dtype == np.float32)
    own = {"sha256": hashlib.sha256(graph).hexdigest(), "parameters": parameters}
    card["heads"]["where"].update(own)
    (folder / "card.json").write_text(json.dumps(card))
    return load_bundle(folder)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(
            renamed("Relu", "Tanh"), "Tanh is no layer with Relu", id="another-activation"
        ),
        pytest.param(renamed("Max", "Add"), "weighted in another way", id="another-prior"),
        pytest.param(pooled, "is no layer with Relu", id="pooling"),
    ],
)
def test_a_graph_of_another_shape_is_answered_by_onnxruntime_and_says_why(
    change: Callable[[onnx.ModelProto], None], reason: str, tmp_path: Path
) -> None:
    bundle = bundle_with(tmp_path, change)
    assert bundle.runners == {
        "where": Runner.ONNXRUNTIME, "when": Runner.KERNEL, "how_fast": Runner.KERNEL
    }  # fmt: skip
    assert list(bundle.not_in_kernel) == ["where"]
    assert reason in bundle.not_in_kernel["where"]
    asked = decision(WHERE, 1, 20, seed=4)
    assert bundle.where(*asked).shape == (1, 20)


def test_onnxruntime_answers_if_the_library_would_answer_otherwise() -> None:
    graph, tried = graph_of(WHERE, SMALL, seed=5), [decision(WHERE, 1, 20, seed=5)]
    right = in_onnxruntime(graph, WHERE)

    def other(candidates: Float32s, context: Float32s) -> Float32s:
        return right(candidates, context) + np.float32(1e-3)

    assert choose_runner(graph, WHERE, right, tried).runner is Runner.KERNEL
    found = choose_runner(graph, WHERE, other, tried)
    assert (found.policy, found.runner) == (other, Runner.ONNXRUNTIME)
    assert "costs differ by 0.00" in found.reason and "more than 1e-05" in found.reason


def test_costs_that_double_with_each_operator_are_not_followed_for_ever() -> None:
    head, node = WHERE, helper.make_node
    names = [head.candidates_input, *(f"twice{place}" for place in range(99))]
    nodes = [
        node("Add", [name, name], [more]) for name, more in zip(names, names[1:], strict=False)
    ]
    nodes.append(node("Squeeze", [names[-1], "axis.1"], ["relative_cost"]))
    axis = numpy_helper.from_array(np.array([1]), "axis.1")
    model = helper.make_model(helper.make_graph(nodes, "sums", [], [], [axis]))
    with pytest.raises(AnotherShape, match="more than 64 terms"):
        known_net(bytes(model.SerializeToString()), head)
