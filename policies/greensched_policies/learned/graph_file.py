"""Reads as much of an ONNX file as it takes to refuse graphs that must not be served.

The images that serve have no `onnx` package, and running a graph does not show every fault: a NaN
weight may hide behind a Relu. So this parses the protobuf wire format (onnx.proto3 of ONNX IR
version 10; only varint, 64-bit, length-delimited and 32-bit fields exist there).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

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

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
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

Field = tuple[int, int, "int | memoryview"]  # number, wire type, value


class NotOnnx(ValueError):
    """The bytes are not an ONNX model: truncated, or in another format."""


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
    for number, wire, value in _fields(memoryview(model)):
        if number == _MODEL_GRAPH:
            graphs += 1
            _read_graph(_message(wire, value), facts)
        elif number == _MODEL_FUNCTIONS:
            facts.has_subgraphs = True
        elif number == _MODEL_OPSET_IMPORT:
            _note_domain(_string(_message(wire, value), _OPSET_DOMAIN), facts)
    if graphs != 1:
        raise NotOnnx(f"expected one graph, found {graphs}")
    return facts


def _read_graph(graph: memoryview, facts: GraphFacts) -> None:
    for number, wire, value in _fields(graph):
        if number == _GRAPH_NODE:
            _read_node(_message(wire, value), facts)
        elif number == _GRAPH_INITIALIZER:
            facts.parameters += _read_tensor(_message(wire, value), facts)
        elif number == _GRAPH_SPARSE_INITIALIZER:
            facts.has_unreadable_tensors = True


def _read_node(node: memoryview, facts: GraphFacts) -> None:
    operator = _string(node, _NODE_OP_TYPE)
    facts.operators.add(operator)
    _note_domain(_string(node, _NODE_DOMAIN), facts)
    for number, wire, value in _fields(node):
        if number == _NODE_INPUT and not len(_message(wire, value)):
            facts.incomplete |= {operator} - _MAY_LEAVE_OUT
        elif number == _NODE_ATTRIBUTE:
            _read_attribute(_message(wire, value), facts)


def _read_attribute(attribute: memoryview, facts: GraphFacts) -> None:
    for number, wire, value in _fields(attribute):
        if number in (_ATTRIBUTE_TENSOR, _ATTRIBUTE_TENSORS):
            _read_tensor(_message(wire, value), facts)
        elif number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS):
            facts.has_subgraphs = True
        elif number in _ATTRIBUTE_SPARSE:
            facts.has_unreadable_tensors = True
        elif number in (_ATTRIBUTE_FLOAT, _ATTRIBUTE_FLOATS):
            if not np.isfinite(_reals(_message_or_word(value), "<f4", "an attribute")).all():
                facts.not_finite.append("an attribute")


def _read_tensor(tensor: memoryview, facts: GraphFacts) -> int:
    """Record whether the tensor is finite; return its number of real numbers."""
    data_type, name, count = 0, "", 0
    chunks: list[tuple[str | None, memoryview]] = []  # None: by the data type
    for number, wire, value in _fields(tensor):
        if number == _TENSOR_TYPE and isinstance(value, int):
            data_type = value
        elif number == _TENSOR_NAME:
            name = bytes(_message(wire, value)).decode(errors="replace")
        elif number == _TENSOR_FLOATS:
            chunks.append(("<f4", _message_or_word(value)))
        elif number == _TENSOR_DOUBLES:
            chunks.append(("<f8", _message_or_word(value)))
        elif number == _TENSOR_RAW:
            chunks.append((None, _message(wire, value)))
        elif number == _TENSOR_EXTERNAL or (number == _TENSOR_LOCATION and value):
            facts.has_external_data = True
    if data_type in _WHOLE_TYPES:
        return 0
    if data_type not in _REAL_TYPES or (data_type == 10 and any(kind for kind, _ in chunks)):
        facts.has_unreadable_tensors = True
        return 0
    for kind, chunk in chunks:
        values = _reals(chunk, kind or _REAL_TYPES[data_type], f"tensor {name!r}")
        count += values.size
        if not np.isfinite(values).all():
            facts.not_finite.append(name or "a constant")
    return count


def _reals(chunk: memoryview, kind: str, where: str) -> npt.NDArray[np.floating]:
    dtype = np.dtype(kind)
    if len(chunk) % dtype.itemsize:
        raise NotOnnx(f"{where} holds a broken number of bytes")
    return np.frombuffer(chunk, dtype=dtype)


def _note_domain(domain: str, facts: GraphFacts) -> None:
    if domain not in ALLOWED_DOMAINS:
        facts.domains.add(domain)


def _string(message: memoryview, wanted: int) -> str:
    for number, wire, value in _fields(message):
        if number == wanted:
            return bytes(_message(wire, value)).decode(errors="replace")
    return ""


def _message(wire: int, value: int | memoryview) -> memoryview:
    if wire != _BYTES or isinstance(value, int):
        raise NotOnnx("a field of bytes has another type")
    return value


def _message_or_word(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise NotOnnx("a field of real numbers has another type")
    return value


def _fields(message: memoryview) -> Iterator[Field]:
    """Yield the fields of one protobuf message; raises NotOnnx where it does not parse."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            whole, at = _varint(message, at)
            yield number, wire, whole
            continue
        if wire == _BYTES:
            size, at = _varint(message, at)
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
        else:
            raise NotOnnx(f"unknown wire type {wire}")
        if number == 0 or at + size > end:
            raise NotOnnx("the file is cut off or is not protobuf")
        yield number, wire, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise NotOnnx("the file is cut off")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise NotOnnx("a number is too long")
