"""ONNX graphs of nets with random weights, laid out as `policies/train/export_prior.py` does."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import onnx
from onnx import helper

from greensched_policies.encoding.observation import CONTEXT_FEATURES
from greensched_policies.learned.heads import HOW_FAST, WHERE, Head
from greensched_policies.learned.onnx_policy import CONTEXT_INPUT, OUTPUT
from greensched_policies.library.nets import Float32s

EXPORTER = Path(__file__).parents[3] / "policies" / "train" / "export_prior.py"


@dataclass(frozen=True)
class NetShape:
    """What a random net has."""

    widths: Sequence[int]  # of the hidden layers
    has_prior: bool = True
    reads_context: bool = True
    has_biases: bool = True


def exporter() -> ModuleType:
    """Return the script that exports the prior."""
    spec = importlib.util.spec_from_file_location("export_prior", EXPORTER)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_EXPORT = exporter()


def prior_of(head: Head) -> tuple[list[onnx.NodeProto], dict[str, np.ndarray]]:
    """Return the operators and constants of the shipped prior."""
    if head is WHERE:
        return _EXPORT.where_prior(), _EXPORT.prior_constants()
    if head is HOW_FAST:
        return _EXPORT.how_fast_prior(), _EXPORT.how_fast_constants()
    return _EXPORT.when_prior(), _EXPORT.when_constants()


def graph_of(head: Head, shape: NetShape, seed: int) -> bytes:
    """Return a graph whose weights are random, the last layer's too."""
    rng = np.random.default_rng(seed)

    def random(*size: int) -> np.ndarray:
        scale = np.sqrt(6.0 / max(size[-1], 1))
        return np.asarray((rng.random(size) * 2.0 - 1.0) * scale, np.float32)

    nodes, tensors = prior_of(head)
    node, inputs, below = helper.make_node, head.features, head.candidates_input
    for place, width in enumerate(shape.widths):
        tensors[f"w{place}"], tensors[f"b{place}"] = random(width, inputs), random(width, 1)
        nodes.append(node("MatMul", [f"w{place}", below], [f"own{place}"]))
        summed = f"own{place}"
        if place == 0 and shape.reads_context:
            tensors["shared"], tensors["b0"] = random(len(CONTEXT_FEATURES), width), random(width)
            nodes += [
                node("MatMul", [CONTEXT_INPUT, "shared"], ["product"]),
                node("Add", ["b0", "product"], ["offset"]),
                node("Unsqueeze", ["offset" if shape.has_biases else "product", "axis.2"], ["col"]),
                node("Add", ["col", summed], ["sum0"]),
            ]
            summed = "sum0"
        elif shape.has_biases:
            nodes.append(node("Add", [summed, f"b{place}"], [f"sum{place}"]))
            summed = f"sum{place}"
        nodes.append(node("Relu", [summed], [f"h{place}"]))
        inputs, below = width, f"h{place}"
    tensors["last"], tensors["last.bias"] = random(1, inputs), random(1)
    nodes += [
        node("MatMul", ["last", below], ["last.own"]),
        node("Add", ["last.own", "last.bias"], ["residual"]),
    ]
    if shape.has_prior:
        nodes.append(node("Add", ["residual", "prior"], ["sum"]))
    nodes.append(node("Squeeze", ["sum" if shape.has_prior else "residual", "axis.1"], [OUTPUT]))
    built = _EXPORT.build_graph(_EXPORT.Graph(head, nodes, tensors))
    return bytes(built.SerializeToString())


def decision(head: Head, batch: int, count: int, seed: int) -> tuple[Float32s, Float32s]:
    """Return random candidates, feature-major in memory, and their context."""
    rng = np.random.default_rng(seed)
    rows = (rng.random((batch, head.features, count)) * 4.0 - 1.0).astype(np.float32)
    context = (rng.random((batch, len(CONTEXT_FEATURES))) * 2.0).astype(np.float32)
    return rows.transpose((0, 2, 1)), context
