"""Reads an ONNX graph as one expression: what its output is computed from.

Only of graphs that `graph_file.py` has found no fault with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from greensched_policies.learned.protobuf import (
    NotOnnx,
    bytes_or_word,
    message_fields,
    message_of,
    reals_of,
    text_of,
    texts_of,
    whole_numbers,
)

# Field numbers of onnx.proto3.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER = 1, 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_OP_TYPE, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_INTEGER, _ATTRIBUTE_TENSOR, _ATTRIBUTE_INTEGERS = 1, 3, 5, 8
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_FLOATS, _TENSOR_WHOLE = 1, 2, 4, 7
_TENSOR_NAME, _TENSOR_RAW = 8, 9
# TensorProto.DataType → numpy
_TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 7: np.dtype("<i8")}


@dataclass(frozen=True, slots=True, eq=False)
class GraphInput:
    """An input of the graph."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A tensor of float32 or int64 in the file; None for one of another type."""

    value: npt.NDArray[Any] | None


@dataclass(frozen=True, slots=True, eq=False)
class Applied:
    """An operator, applied to expressions; its options are those of whole numbers."""

    operator: str
    inputs: tuple["Expression", ...]
    options: Mapping[str, tuple[int, ...]]


Expression: TypeAlias = GraphInput | Constant | Applied


def read_expression(model: bytes, output: str) -> Expression:
    """Return what an output of a graph is computed from; raises NotOnnx if there is no such one."""
    found: dict[str, Expression] = {}
    for number, wire, value in message_fields(memoryview(model)):
        if number == _MODEL_GRAPH:
            graph = message_of(wire, value)
            found |= _tensors_of(graph)
            for part, kind, content in message_fields(graph):
                if part == _GRAPH_NODE:
                    _apply(message_of(kind, content), found)
    if output not in found:
        raise NotOnnx(f"nothing computes {output!r}")
    return found[output]


def _tensors_of(graph: memoryview) -> dict[str, Expression]:
    found: dict[str, Expression] = {}
    for number, wire, value in message_fields(graph):
        if number == _GRAPH_INITIALIZER:
            tensor = message_of(wire, value)
            found[text_of(tensor, _TENSOR_NAME)] = Constant(_tensor(tensor))
    return found


def _apply(node: memoryview, found: dict[str, Expression]) -> None:
    """Add what a node computes; ONNX has the nodes in an order in which they can be computed."""
    operator, options = text_of(node, _NODE_OP_TYPE), dict[str, tuple[int, ...]]()
    for number, wire, value in message_fields(node):
        if number == _NODE_ATTRIBUTE:
            attribute = message_of(wire, value)
            options[text_of(attribute, _ATTRIBUTE_NAME)] = _integers_of(attribute)
    inputs = tuple(found.get(name) or GraphInput(name) for name in texts_of(node, _NODE_INPUT))
    for place, name in enumerate(texts_of(node, _NODE_OUTPUT)):
        is_first = place == 0  # no operator of interest has more than one
        found[name] = Applied(operator if is_first else "", inputs, options)
        if operator == "Constant":
            found[name] = Constant(_tensor_in(node))


def _tensor_in(node: memoryview) -> npt.NDArray[Any] | None:
    for number, wire, value in message_fields(node):
        if number == _NODE_ATTRIBUTE:
            for part, kind, content in message_fields(message_of(wire, value)):
                if part == _ATTRIBUTE_TENSOR:
                    return _tensor(message_of(kind, content))
    return None


def _integers_of(attribute: memoryview) -> tuple[int, ...]:
    found: list[int] = []
    for number, wire, value in message_fields(attribute):
        if number in (_ATTRIBUTE_INTEGER, _ATTRIBUTE_INTEGERS):
            found += whole_numbers(wire, value)
    return tuple(found)


def _tensor(tensor: memoryview) -> npt.NDArray[Any] | None:
    """Return a tensor of float32 or int64; None for one of another type, or of another size."""
    shape: list[int] = []
    kind, parts = 0, list[npt.NDArray[Any]]()
    for number, wire, value in message_fields(tensor):
        if number == _TENSOR_DIMS:
            shape += whole_numbers(wire, value)
        elif number == _TENSOR_TYPE and isinstance(value, int):
            kind = value
        elif number == _TENSOR_FLOATS:
            parts.append(reals_of(bytes_or_word(value), "<f4", "a tensor"))
        elif number == _TENSOR_WHOLE:
            parts.append(np.fromiter(whole_numbers(wire, value), np.int64))
        elif number == _TENSOR_RAW:
            parts.append(np.frombuffer(message_of(wire, value), np.uint8))
    dtype = _TYPES.get(kind)
    if dtype is None or any(size < 0 for size in shape):
        return None
    whole = b"".join(part.tobytes() for part in parts)
    if len(whole) != dtype.itemsize * int(np.prod(shape, dtype=object)):
        return None
    return np.frombuffer(whole, dtype).reshape(shape)
