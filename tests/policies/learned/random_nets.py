"""ONNX graphs of nets with random weights, laid out as trained ones are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from greensched_policies.encoding.observation import CONTEXT_FEATURES
from greensched_policies.learned.heads import Head
from greensched_policies.learned.onnx_policy import CONTEXT_INPUT, OUTPUT
from greensched_policies.library.nets import Float32s
from greensched_train.graphs import Graph, model_of, rule_terms
from greensched_train.residual_nets import priors


@dataclass(frozen=True)
class NetShape:
    """What a random net has."""

    widths: Sequence[int]  # of the hidden layers
    has_prior: bool = True
    reads_context: bool = True
    has_biases: bool = True


def graph_of(head: Head, shape: NetShape, seed: int) -> bytes:
    """Return a graph whose weights are random, the last layer's too."""
    rng = np.random.default_rng(seed)

    def random(*size: int) -> np.ndarray:
        scale = np.sqrt(6.0 / max(size[-1], 1))
        return np.asarray((rng.random(size) * 2.0 - 1.0) * scale, np.float32)

    graph = Graph(head)
    terms = rule_terms(priors()[head.name], graph) if shape.has_prior else []
    inputs, below = head.features, head.candidates_input
    for place, width in enumerate(shape.widths):
        weights = graph.constant(f"w{place}", random(width, inputs))
        biases = graph.constant(f"b{place}", random(width, 1))
        summed = graph.add("MatMul", [weights, below], f"own{place}")
        if place == 0 and shape.reads_context:
            shared = graph.constant("shared", random(len(CONTEXT_FEATURES), width))
            biases = graph.constant("b0", random(width))
            offset = graph.add("MatMul", [CONTEXT_INPUT, shared], "product")
            if shape.has_biases:
                offset = graph.add("Add", [biases, offset], "offset")
            axis = graph.constant("axis.2", [2], np.int64)
            column = graph.add("Unsqueeze", [offset, axis], "col")
            summed = graph.add("Add", [column, summed], "sum0")
        elif shape.has_biases:
            summed = graph.add("Add", [summed, biases], f"sum{place}")
        inputs, below = width, graph.add("Relu", [summed], f"h{place}")
    last = graph.constant("last", random(1, inputs))
    own = graph.add("MatMul", [last, below], "last.own")
    whole = graph.add("Add", [own, graph.constant("last.bias", random(1))], "residual")
    for place, term in enumerate(terms):
        whole = graph.add("Add", [whole, term], f"with.{place}")
    graph.add("Squeeze", [whole, graph.constant("axis.1", [1], np.int64)], OUTPUT)
    return bytes(model_of(graph).SerializeToString())


def decision(head: Head, batch: int, count: int, seed: int) -> tuple[Float32s, Float32s]:
    """Return random candidates, feature-major in memory, and their context."""
    rng = np.random.default_rng(seed)
    rows = (rng.random((batch, head.features, count)) * 4.0 - 1.0).astype(np.float32)
    context = (rng.random((batch, len(CONTEXT_FEATURES))) * 2.0).astype(np.float32)
    return rows.transpose((0, 2, 1)), context
