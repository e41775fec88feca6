"""Exports the prior as a bundle: weighted_cost plus a residual net that is still zero.

    python policies/train/export_prior.py [--out FOLDER] [--seed N]

relative_cost = prior(context) · nodes + net(nodes, context)
net: 16 + 8 → 16 → 16 → 1 with Relu, shared by all candidates, which are the columns; its last
layer is zero, so that training starts at the prior and cannot silently be worse. The same seed
gives the same bytes.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from greensched_policies.bundle import CARD_FILE, SHIPPED_PRIOR, WHERE_FILE
from greensched_policies.observation import (
    CARBON,
    CONTEXT_FEATURES,
    COST,
    ENCODING_VERSION,
    NODE_FEATURES,
    SLOWDOWN,
    WEIGHT_CARBON,
    WEIGHT_ENERGY,
    WEIGHT_PERFORMANCE,
)
from greensched_policies.onnx_policy import CONTEXT_INPUT, NODES_INPUT, OUTPUT
from greensched_policies.weighted_cost import LEAST_WEIGHT, weighted_cost

HIDDEN = 16
OPSET = 17
IR_VERSION = 8  # the oldest that carries opset 17: any onnxruntime since 1.12 reads it
SEED = 20261121
NODES, CONTEXT = len(NODE_FEATURES), len(CONTEXT_FEATURES)

Weights = dict[str, npt.NDArray[Any]]


def initial_weights(seed: int) -> Weights:
    """Return the net's weights by name: He-uniform from `seed`, the last layer zero."""
    rng = np.random.default_rng(seed)

    def he_uniform(inputs: int, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
        # He et al., "Delving Deep into Rectifiers", ICCV 2015; `random` is numpy's stablest
        # stream, so that the bytes survive its releases.
        bound = np.sqrt(6.0 / inputs)
        values = (rng.random(shape) * 2.0 - 1.0) * bound
        return np.asarray(values, dtype=np.float32)

    return {
        "net.1.nodes": he_uniform(NODES + CONTEXT, (HIDDEN, NODES)),
        "net.1.context": he_uniform(NODES + CONTEXT, (CONTEXT, HIDDEN)),
        "net.1.bias": np.zeros(HIDDEN, np.float32),
        "net.2.weight": he_uniform(HIDDEN, (HIDDEN, HIDDEN)),
        "net.2.bias": np.zeros((HIDDEN, 1), np.float32),
        "net.3.weight": np.zeros((1, HIDDEN), np.float32),
        "net.3.bias": np.zeros(1, np.float32),
    }


def prior_constants() -> Weights:
    """Return what turns the context's weights into one coefficient per node feature."""
    places = np.zeros((CONTEXT, NODES), np.float32)
    for weight, feature in (
        (WEIGHT_ENERGY, COST),
        (WEIGHT_CARBON, CARBON),
        (WEIGHT_PERFORMANCE, SLOWDOWN),
    ):
        places[weight, feature] = 1.0
    return {
        "prior.places": places,
        "prior.sum": places.sum(axis=1, keepdims=True),
        "prior.least": np.array([LEAST_WEIGHT], np.float32),
        "axis.1": np.array([1], np.int64),
        "axis.2": np.array([2], np.int64),
    }


def prior_and_net() -> list[onnx.NodeProto]:
    """Return the operators of the weighted prior and of the residual net, in order."""
    node = helper.make_node
    return [
        # prior: (context · places / sum of weights) [B,1,16] · nodes [B,16,N]
        node("MatMul", [CONTEXT_INPUT, "prior.places"], ["prior.placed"]),
        node("MatMul", [CONTEXT_INPUT, "prior.sum"], ["prior.total"]),
        node("Max", ["prior.total", "prior.least"], ["prior.divisor"]),
        node("Div", ["prior.placed", "prior.divisor"], ["prior.coefficients"]),
        node("Unsqueeze", ["prior.coefficients", "axis.1"], ["prior.row"]),
        node("MatMul", ["prior.row", NODES_INPUT], ["prior"]),
        # net: the context's part of layer 1 once per decision, not once per candidate
        node("MatMul", [CONTEXT_INPUT, "net.1.context"], ["net.1.shared"]),
        node("Add", ["net.1.shared", "net.1.bias"], ["net.1.offset"]),
        node("Unsqueeze", ["net.1.offset", "axis.2"], ["net.1.column"]),
        node("MatMul", ["net.1.nodes", NODES_INPUT], ["net.1.own"]),
        node("Add", ["net.1.own", "net.1.column"], ["net.1.sum"]),
        node("Relu", ["net.1.sum"], ["net.1"]),
        node("MatMul", ["net.2.weight", "net.1"], ["net.2.own"]),
        node("Add", ["net.2.own", "net.2.bias"], ["net.2.sum"]),
        node("Relu", ["net.2.sum"], ["net.2"]),
        node("MatMul", ["net.3.weight", "net.2"], ["net.3.own"]),
        node("Add", ["net.3.own", "net.3.bias"], ["residual"]),
        node("Add", ["prior", "residual"], ["sum"]),
        node("Squeeze", ["sum", "axis.1"], [OUTPUT]),
    ]


def build_graph(weights: Weights) -> onnx.ModelProto:
    """Return the checked ONNX model; batch B and candidates N are dynamic axes."""
    graph = helper.make_graph(
        prior_and_net(),
        "where",
        [
            helper.make_tensor_value_info(NODES_INPUT, TensorProto.FLOAT, ["B", NODES, "N"]),
            helper.make_tensor_value_info(CONTEXT_INPUT, TensorProto.FLOAT, ["B", CONTEXT]),
        ],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["B", "N"])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="greensched",
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def sample() -> dict[str, Any]:
    """Return an input and the answer that the rule gives it."""
    rng = np.random.default_rng(1)
    nodes = np.round(rng.random((1, 4, NODES)) * 2.0, 3).astype(np.float32)
    context = np.round(rng.random((1, CONTEXT)), 3).astype(np.float32)
    answer = weighted_cost(nodes, context)
    return {
        "nodes": np.round(nodes.astype(np.float64), 3).tolist(),
        "context": np.round(context.astype(np.float64), 3).tolist(),
        "relative_cost": np.round(answer.astype(np.float64), 5).tolist(),
    }


def make_card(graph: bytes, weights: Weights, seed: int) -> dict[str, Any]:
    """Return the card of the untrained prior."""
    tensors = {
        NODES_INPUT: ["B", NODES, "N"],
        CONTEXT_INPUT: ["B", CONTEXT],
        OUTPUT: ["B", "N"],
    }
    card = [{"name": n, "dtype": "float32", "shape": s} for n, s in tensors.items()]
    real = (value.size for value in weights.values() if value.dtype == np.float32)
    return {
        "name": "prior",
        "encoding_version": ENCODING_VERSION,
        "untrained": True,
        "trained_on": "nothing: the weighted-cost rule, with a residual net that adds zero",
        "seeds": [seed],
        "command": f"python policies/train/export_prior.py --seed {seed}",
        "commit": None,
        "evaluation": {},
        "heads": {
            "where": {
                "sha256": hashlib.sha256(graph).hexdigest(),
                "inputs": card[:2],
                "outputs": card[2:],
                "parameters": sum(real),
                "sample": sample(),
            }
        },
    }


def export(folder: Path, seed: int = SEED) -> None:
    """Write `where.onnx` and `card.json` into `folder`, the same bytes for the same seed."""
    weights = prior_constants() | initial_weights(seed)
    graph = build_graph(weights).SerializeToString(deterministic=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WHERE_FILE).write_bytes(graph)
    card = json.dumps(make_card(graph, weights, seed), indent=1) + "\n"
    (folder / CARD_FILE).write_text(card, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=SHIPPED_PRIOR)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    export(arguments.out, arguments.seed)
