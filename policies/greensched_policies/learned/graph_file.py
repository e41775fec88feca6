"""Reads as much of an ONNX file as it takes to refuse graphs that must not be served.

The images that serve have no `onnx` package, and running a graph does not show every fault: a NaN
weight may hide behind a Relu. So this reads the fields of onnx.proto3 of ONNX IR version 10.
"""

from dataclasses import dataclass, field

import numpy as np

from greensched_policies.learned.protobuf import (
    NotOnnx,
    bytes_or_word,
    message_fields,
    message_of,
    reals_of,
    text_of,
)

# A net that scores a set needs no more; no control flow, no custom kernels, no file access.
ALLOWED_OPERATORS = frozenset(
    "Abs Add And Cast Clip Concat Constant ConstantOfShape Div Elu Equal Erf Exp Expand Flatten "
    "Gather Gelu Gemm Greater GreaterOrEqual HardSigmoid Identity LayerNormalization LeakyRelu "
    "Less LessOrEqual Log LogSoftmax MatMul Max Min Mul Neg Not Or Pow Reciprocal ReduceMax "
    "ReduceMean ReduceMin ReduceSum Relu Reshape Selu Shape Sigmoid Slice Softmax Softplus "
    "Split Sqrt Squeeze Sub Tanh Tile Transpose Unsqueeze Where".split()
)
# Operators that may lack an input before the last one. All others need every input; some of them,
# such as Max, crash onnxruntime without it.
_MAY_LEAVE_OUT = frozenset({"Clip", "Slice"})
ALLOWED_DOMAINS = frozenset({"", "ai.onnx"})

# Field numbers of onnx.proto3.
_MODEL_GRAPH, _MODEL_OPSET_IMPORT, _MODEL_FUNCTIONS = 7, 8, 25
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_SPARSE_INITIALIZER = 1, 5, 15
_NODE_INPUT, _NODE_OP_TYPE, _NODE_ATTRIBUTE, _NODE_DOMAIN = 1, 4, 5, 7
_ATTRIBUTE_FLOAT, _ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_FLOATS = 2, 5, 6, 7
_ATTRIBUTE_TENSORS, _ATTRIBUTE_GRAPHS, _ATTRIBUTE_SPARSE = 10, 11, (22, 23)
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_FLOATS, _TENSOR_NAME, _TENSOR_RAW = 1, 2, 4, 8, 9
_TENSOR_DOUBLES, _TENSOR_EXTERNAL, _TENSOR_LOCATION = 10, 13, 14
_OPSET_DOMAIN = 1
# TensorProto.DataType → numpy, for the accepted types that can hold a NaN.
_REAL_TYPES = {1: "<f4", 11: "<f8", 10: "<f2"}
_WHOLE_TYPES = frozenset({2, 3, 4, 5, 6, 7, 9, 12, 13})  # integers and bool


@dataclass(slots=True)
class GraphFacts:
    """The contents of a graph file."""

    operators: set[str] = field(default_factory=set)
    domains: set[str] = field(default_factory=set)  # other than ONNX's own
    parameters: int = 0  # real numbers in initialisers
    has_external_data: bool = False
    has_subgraphs: bool = False  # If, Loop, Scan, or functions of its own
    has_unreadable_tensors: bool = False  # a data type or layout that is not checked here
    incomplete: set[str] = field(default_factory=set)  # operators that lack an input
    not_finite: list[str] = field(default_factory=list)  # tensors with NaN or infinity

    @property
    def unknown_operators(self) -> list[str]:
        """Operators that are not on the list of allowed ones, sorted by name."""
        return sorted(self.operators - ALLOWED_OPERATORS)


def read_graph_facts(model: bytes) -> GraphFacts:
    """Return the contents of a file; raises NotOnnx when it is not a complete ONNX model."""
    facts = GraphFacts()
    graphs = 0
    for number, wire, value in message_fields(memoryview(model)):
        if number == _MODEL_GRAPH:
            graphs += 1
            _read_graph(message_of(wire, value), facts)
        elif number == _MODEL_FUNCTIONS:
            facts.has_subgraphs = True
        elif number == _MODEL_OPSET_IMPORT:
            _note_domain(text_of(message_of(wire, value), _OPSET_DOMAIN), facts)
    if graphs != 1:
        raise NotOnnx(f"expected one graph, found {graphs}")
    return facts


def _read_graph(graph: memoryview, facts: GraphFacts) -> None:
    for number, wire, value in message_fields(graph):
        if number == _GRAPH_NODE:
            _read_node(message_of(wire, value), facts)
        elif number == _GRAPH_INITIALIZER:
            facts.parameters += _read_tensor(message_of(wire, value), facts)
        elif number == _GRAPH_SPARSE_INITIALIZER:
            facts.has_unreadable_tensors = True


def _read_node(node: memoryview, facts: GraphFacts) -> None:
    operator = text_of(node, _NODE_OP_TYPE)
    facts.operators.add(operator)
    _note_domain(text_of(node, _NODE_DOMAIN), facts)
    for number, wire, value in message_fields(node):
        if number == _NODE_INPUT and not len(message_of(wire, value)):
            facts.incomplete |= {operator} - _MAY_LEAVE_OUT
        elif number == _NODE_ATTRIBUTE:
            _read_attribute(message_of(wire, value), facts)


def _read_attribute(attribute: memoryview, facts: GraphFacts) -> None:
    for number, wire, value in message_fields(attribute):
        if number in (_ATTRIBUTE_TENSOR, _ATTRIBUTE_TENSORS):
            _read_tensor(message_of(wire, value), facts)
        elif number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS):
            facts.has_subgraphs = True
        elif number in _ATTRIBUTE_SPARSE:
            facts.has_unreadable_tensors = True
        elif number in (_ATTRIBUTE_FLOAT, _ATTRIBUTE_FLOATS):
            if not np.isfinite(reals_of(bytes_or_word(value), "<f4", "an attribute")).all():
                facts.not_finite.append("an attribute")


def _read_tensor(tensor: memoryview, facts: GraphFacts) -> int:
    """Record whether the tensor is finite; return its number of real numbers."""
    data_type, name, count = 0, "", 0
    chunks: list[tuple[str | None, memoryview]] = []  # None: by the data type
    for number, wire, value in message_fields(tensor):
        if number == _TENSOR_TYPE and isinstance(value, int):
            data_type = value
        elif number == _TENSOR_NAME:
            name = bytes(message_of(wire, value)).decode(errors="replace")
        elif number == _TENSOR_FLOATS:
            chunks.append(("<f4", bytes_or_word(value)))
        elif number == _TENSOR_DOUBLES:
            chunks.append(("<f8", bytes_or_word(value)))
        elif number == _TENSOR_RAW:
            chunks.append((None, message_of(wire, value)))
        elif number == _TENSOR_EXTERNAL or (number == _TENSOR_LOCATION and value):
            facts.has_external_data = True
    if data_type in _WHOLE_TYPES:
        return 0
    if data_type not in _REAL_TYPES or (data_type == 10 and any(kind for kind, _ in chunks)):
        facts.has_unreadable_tensors = True
        return 0
    for kind, chunk in chunks:
        values = reals_of(chunk, kind or _REAL_TYPES[data_type], f"tensor {name!r}")
        count += values.size
        if not np.isfinite(values).all():
            facts.not_finite.append(name or "a constant")
    return count


def _note_domain(domain: str, facts: GraphFacts) -> None:
    if domain not in ALLOWED_DOMAINS:
        facts.domains.add(domain)
