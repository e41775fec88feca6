"""Lays out nets as ONNX graphs, in the one way that the library recognises (`known_nets.py`).

Candidates are the columns, [B,features,N], and the context is [B,15]; batch and candidates are
dynamic axes. The terms of a cost are added up, and the context's part of the first layer is
computed once per decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from greensched_policies.encoding.observation import CONTEXT_FEATURES
from greensched_policies.learned.heads import Head
from greensched_policies.learned.onnx_policy import CONTEXT_INPUT, OUTPUT
from greensched_policies.library.nets import CandidateNet, Overload

OPSET = 17
IR_VERSION = 8  # the oldest that carries opset 17: any onnxruntime since 1.12 reads it

Tensors = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Graph:
    """One head's operators in order, and the tensors that they use."""

    head: Head
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    tensors: Tensors = field(default_factory=dict)

    def add(self, operator: str, inputs: Sequence[str], output: str, **options: Any) -> str:
        """Append an operator, and return its output's name."""
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **options))
        return output

    def constant(self, name: str, value: npt.ArrayLike, dtype: type = np.float32) -> str:
        """Add a tensor, and return its name."""
        self.tensors[name] = np.asarray(value, dtype)
        return name


def graph_of(net: CandidateNet, head: Head) -> Graph:
    """Return the graph of a head's net."""
    graph = Graph(head)
    terms = [*rule_terms(net, graph), *_layers(net, graph)]
    whole = terms[0]
    for place, term in enumerate(terms[1:]):
        whole = graph.add("Add", [whole, term], f"sum.{place}")
    axis = graph.constant("axis.1", [1], np.int64)
    graph.add("Squeeze", [whole, axis], OUTPUT)
    return graph


def rule_terms(net: CandidateNet, graph: Graph) -> list[str]:
    """Add the terms of a net but for its layers, [B,1,N] each, and return their names."""
    terms, candidates = list[str](), graph.head.candidates_input
    if net.own.any():
        own = graph.constant("rule.own", net.own[None])
        terms.append(graph.add("MatMul", [own, candidates], "rule.of_own"))
    if net.placed.any():
        terms.append(_weighted(net, graph))
    if net.overload is not None:
        terms.append(_overload(net.overload, graph))
    if net.offset:
        terms.append(graph.constant("rule.offset", [net.offset]))
    return terms


def _weighted(net: CandidateNet, graph: Graph) -> str:
    """Add (context · placed / max(context · total, least)) · candidates."""
    placed = graph.constant("rule.placed", net.placed)
    total = graph.constant("rule.total", net.total[:, None])
    least, axis = graph.constant("rule.least", [net.least]), graph.constant("axis.1", [1], np.int64)
    above = graph.add("MatMul", [CONTEXT_INPUT, placed], "rule.above")
    below = graph.add("MatMul", [CONTEXT_INPUT, total], "rule.below")
    divisor = graph.add("Max", [below, least], "rule.divisor")
    coefficients = graph.add("Div", [above, divisor], "rule.coefficients")
    row = graph.add("Unsqueeze", [coefficients, axis], "rule.row")
    return graph.add("MatMul", [row, graph.head.candidates_input], "rule.of_weights")


def _overload(overload: Overload, graph: Graph) -> str:
    """Add overload · (one + greatest − least weighted) · busiest · (busiest > full)."""
    candidates = graph.head.candidates_input

    def feature(name: str, place: int) -> str:
        at = graph.constant(f"place.{name}", [place], np.int64)
        return graph.add("Gather", [candidates, at], f"rule.{name}", axis=1)

    weighted, busiest = feature("weighted", overload.weighted), feature("busiest", overload.busiest)
    one = graph.constant("rule.one", [overload.one])
    full = graph.constant("rule.full", [overload.full])
    factor = graph.constant("rule.overload", [overload.overload])
    most = graph.add("ReduceMax", [weighted], "rule.most", axes=[2], keepdims=1)
    least = graph.add("ReduceMin", [weighted], "rule.lowest", axes=[2], keepdims=1)
    spread = graph.add("Sub", [most, least], "rule.spread")
    distance = graph.add("Add", [one, spread], "rule.distance")
    dearer = graph.add("Mul", [factor, distance], "rule.dearer")
    by_load = graph.add("Mul", [dearer, busiest], "rule.by_load")
    is_over = graph.add("Greater", [busiest, full], "rule.is_over")
    over = graph.add("Cast", [is_over], "rule.over", to=TensorProto.FLOAT)
    return graph.add("Mul", [by_load, over], "rule.beyond")


def _layers(net: CandidateNet, graph: Graph) -> list[str]:
    """Add the net's layers; there may be none."""
    if not net.layers:
        return []
    first, *others = net.layers
    axis = graph.constant("axis.2", [2], np.int64)
    weights = graph.constant("net.1.weights", first.weights)
    of_context = graph.constant("net.1.context", net.of_context)
    biases = graph.constant("net.1.biases", first.biases)
    shared = graph.add("MatMul", [CONTEXT_INPUT, of_context], "net.1.shared")
    offset = graph.add("Add", [shared, biases], "net.1.offset")
    column = graph.add("Unsqueeze", [offset, axis], "net.1.column")
    own = graph.add("MatMul", [weights, graph.head.candidates_input], "net.1.own")
    values = graph.add("Add", [own, column], "net.1.sum")
    for number, layer in enumerate(others, start=2):
        values = graph.add("Relu", [values], f"net.{number - 1}")
        weights = graph.constant(f"net.{number}.weights", layer.weights)
        biases = graph.constant(f"net.{number}.biases", layer.biases[:, None])
        own = graph.add("MatMul", [weights, values], f"net.{number}.own")
        values = graph.add("Add", [own, biases], f"net.{number}.sum")
    return [values]


def model_of(graph: Graph) -> onnx.ModelProto:
    """Return the checked ONNX model."""
    head = graph.head
    candidates: list[str | int | None] = ["B", head.features, head.axis]
    built = helper.make_graph(
        graph.nodes,
        head.name,
        [
            helper.make_tensor_value_info(head.candidates_input, TensorProto.FLOAT, candidates),
            helper.make_tensor_value_info(
                CONTEXT_INPUT, TensorProto.FLOAT, ["B", len(CONTEXT_FEATURES)]
            ),
        ],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["B", head.axis])],
        [numpy_helper.from_array(value, name) for name, value in graph.tensors.items()],
    )
    model = helper.make_model(
        built,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="greensched",
    )
    onnx.checker.check_model(model, full_check=True)
    return model
