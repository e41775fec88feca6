"""Exports the prior as a bundle: a rule for each head, plus a residual net that is still zero.

    python policies/train/export_prior.py [--out FOLDER] [--seed N]

where:    relative_cost = weighted_cost(nodes, context) + net(nodes, context)
when:     relative_cost = planned_window(slots) + net(slots, context)
how_fast: relative_cost = full_speed(power_caps) + net(power_caps, context)
net: features + 15 → 16 → 16 → 1 with Relu, shared by all candidates, which are the columns; its
last layer is zero, so that training starts at the prior and cannot silently be worse. The same
seed gives the same bytes.
"""

import argparse
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from greensched_policies.encoding.observation import (
    CARBON,
    CONTEXT_FEATURES,
    COST,
    ENCODING_VERSION,
    NODE_FEATURES,
    SLOWDOWN,
    WEIGHT_CARBON,
    WEIGHT_COST,
    WEIGHT_PERFORMANCE,
)
from greensched_policies.encoding.power_cap_observation import POWER_CAP_FEATURES
from greensched_policies.encoding.slot_observation import SLOT_FEATURES
from greensched_policies.encoding.slots import FULL, OVERLOAD_COST, SlotColumns
from greensched_policies.learned.card import CARD_FILE, SHIPPED_PRIOR
from greensched_policies.learned.heads import HOW_FAST, WHEN, WHERE, Head
from greensched_policies.learned.onnx_policy import (
    CONTEXT_INPUT,
    NODES_INPUT,
    OUTPUT,
    POWER_CAPS_INPUT,
    SLOTS_INPUT,
)
from greensched_policies.rules.when import planned_window
from greensched_policies.rules.where import LEAST_WEIGHT, weighted_cost

HIDDEN = 16
OPSET = 17
IR_VERSION = 8  # the oldest that carries opset 17: any onnxruntime since 1.12 reads it
SEED = 20261121
NODES, CONTEXT, SLOTS = len(NODE_FEATURES), len(CONTEXT_FEATURES), len(SLOT_FEATURES)
POWER_CAPS = len(POWER_CAP_FEATURES)

Weights = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Graph:
    """One head's operators in order, and the tensors that they use."""

    head: Head
    nodes: list[onnx.NodeProto]
    tensors: Weights


def initial_weights(
    seed: int | list[int], features: int = NODES, candidates: str = NODES_INPUT
) -> Weights:
    """Return the net's weights by name: He-uniform from `seed`, the last layer zero."""
    rng = np.random.default_rng(seed)

    def he_uniform(inputs: int, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
        # He et al., "Delving Deep into Rectifiers", ICCV 2015; `random` is numpy's most stable
        # stream, so that the bytes stay the same across its releases.
        bound = np.sqrt(6.0 / inputs)
        values = (rng.random(shape) * 2.0 - 1.0) * bound
        return np.asarray(values, dtype=np.float32)

    return {
        f"net.1.{candidates}": he_uniform(features + CONTEXT, (HIDDEN, features)),
        "net.1.context": he_uniform(features + CONTEXT, (CONTEXT, HIDDEN)),
        "net.1.bias": np.zeros(HIDDEN, np.float32),
        "net.2.weight": he_uniform(HIDDEN, (HIDDEN, HIDDEN)),
        "net.2.bias": np.zeros((HIDDEN, 1), np.float32),
        "net.3.weight": np.zeros((1, HIDDEN), np.float32),
        "net.3.bias": np.zeros(1, np.float32),
    }


def prior_constants() -> Weights:
    """Return the constants that turn the context's weights into a coefficient per node feature."""
    places = np.zeros((CONTEXT, NODES), np.float32)
    for weight, feature in (
        (WEIGHT_COST, COST),
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


def where_prior() -> list[onnx.NodeProto]:
    """Return the operators of weighted_cost: (context · places / sum of weights) · nodes."""
    node = helper.make_node
    return [
        node("MatMul", [CONTEXT_INPUT, "prior.places"], ["prior.placed"]),
        node("MatMul", [CONTEXT_INPUT, "prior.sum"], ["prior.total"]),
        node("Max", ["prior.total", "prior.least"], ["prior.divisor"]),
        node("Div", ["prior.placed", "prior.divisor"], ["prior.coefficients"]),
        node("Unsqueeze", ["prior.coefficients", "axis.1"], ["prior.row"]),
        node("MatMul", ["prior.row", NODES_INPUT], ["prior"]),
    ]


def when_constants() -> Weights:
    """Return the constants of planned_window, and the places of its features."""
    weighted, busiest = (
        SLOT_FEATURES.index(name) for name in ("weighted_over_run", "busiest_over_run")
    )
    return {
        "place.weighted": np.array([weighted], np.int64),
        "place.busiest": np.array([busiest], np.int64),
        "prior.full": np.array([FULL], np.float32),
        "prior.overload": np.array([OVERLOAD_COST], np.float32),
        "prior.one": np.array([1.0], np.float32),
        "axis.1": np.array([1], np.int64),
        "axis.2": np.array([2], np.int64),
    }


def when_prior() -> list[onnx.NodeProto]:
    """Return the operators of planned_window, on [B,1,S].

    weighted + overload · (1 + greatest − least weighted) · busiest · (busiest > full)
    """
    node = helper.make_node
    return [
        node("Gather", [SLOTS_INPUT, "place.weighted"], ["weighted"], axis=1),
        node("Gather", [SLOTS_INPUT, "place.busiest"], ["busiest"], axis=1),
        node("ReduceMax", ["weighted"], ["prior.most"], axes=[2], keepdims=1),
        node("ReduceMin", ["weighted"], ["prior.least"], axes=[2], keepdims=1),
        node("Sub", ["prior.most", "prior.least"], ["prior.spread"]),
        node("Add", ["prior.one", "prior.spread"], ["prior.distance"]),
        node("Mul", ["prior.overload", "prior.distance"], ["prior.dearer"]),
        node("Mul", ["prior.dearer", "busiest"], ["prior.by_load"]),
        node("Greater", ["busiest", "prior.full"], ["is_over"]),
        node("Cast", ["is_over"], ["over"], to=TensorProto.FLOAT),
        node("Mul", ["prior.by_load", "over"], ["prior.beyond"]),
        node("Add", ["weighted", "prior.beyond"], ["prior"]),
    ]


def how_fast_constants() -> Weights:
    """Return the constants of full_speed, and the place of its feature."""
    return {
        "place.cap": np.array([POWER_CAP_FEATURES.index("power_cap")], np.int64),
        "prior.one": np.array([1.0], np.float32),
        "axis.1": np.array([1], np.int64),
        "axis.2": np.array([2], np.int64),
    }


def how_fast_prior() -> list[onnx.NodeProto]:
    """Return the operators of full_speed, on [B,1,L]: 1 − power cap."""
    return [
        helper.make_node("Gather", [POWER_CAPS_INPUT, "place.cap"], ["cap"], axis=1),
        helper.make_node("Sub", ["prior.one", "cap"], ["prior"]),
    ]


def prior_and_net(prior: list[onnx.NodeProto], candidates: str) -> list[onnx.NodeProto]:
    """Return the operators of a prior, [B,1,N], and of the residual net, in order."""
    node = helper.make_node
    return [
        *prior,
        # net: the context's part of layer 1 is computed once per decision, not per candidate
        node("MatMul", [CONTEXT_INPUT, "net.1.context"], ["net.1.shared"]),
        node("Add", ["net.1.shared", "net.1.bias"], ["net.1.offset"]),
        node("Unsqueeze", ["net.1.offset", "axis.2"], ["net.1.column"]),
        node("MatMul", [f"net.1.{candidates}", candidates], ["net.1.own"]),
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


def graphs(seed: int) -> list[Graph]:
    """Return the heads of the prior; each has a separate stream of random numbers."""
    where = prior_constants() | initial_weights(seed)
    when = when_constants() | initial_weights([seed, 1], SLOTS, SLOTS_INPUT)
    how_fast = how_fast_constants() | initial_weights([seed, 2], POWER_CAPS, POWER_CAPS_INPUT)
    return [
        Graph(WHERE, prior_and_net(where_prior(), NODES_INPUT), where),
        Graph(WHEN, prior_and_net(when_prior(), SLOTS_INPUT), when),
        Graph(HOW_FAST, prior_and_net(how_fast_prior(), POWER_CAPS_INPUT), how_fast),
    ]


def build_graph(graph: Graph) -> onnx.ModelProto:
    """Return the checked ONNX model; batch and candidates are dynamic axes."""
    head = graph.head
    candidates: list[str | int | None] = ["B", head.features, head.axis]
    built = helper.make_graph(
        graph.nodes,
        head.name,
        [
            helper.make_tensor_value_info(head.candidates_input, TensorProto.FLOAT, candidates),
            helper.make_tensor_value_info(CONTEXT_INPUT, TensorProto.FLOAT, ["B", CONTEXT]),
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


def sample(head: Head) -> dict[str, Any]:
    """Return an input and the answer that the rule gives it."""
    rng = np.random.default_rng(1)
    candidates = np.round(rng.random((1, 4, head.features)) * 2.0, 3).astype(np.float32)
    context = np.round(rng.random((1, CONTEXT)), 3).astype(np.float32)
    columns = candidates.astype(np.float64).transpose((2, 0, 1))
    if head is WHERE:
        answer = weighted_cost(candidates, context)
    elif head is WHEN:
        answer = planned_window(
            SlotColumns._make([*columns[:8], np.zeros_like(columns[0])])
        ).astype(np.float32)
    else:
        answer = (1.0 - columns[POWER_CAP_FEATURES.index("power_cap")]).astype(np.float32)
    return {
        head.candidates_input: np.round(candidates.astype(np.float64), 3).tolist(),
        "context": np.round(context.astype(np.float64), 3).tolist(),
        "relative_cost": np.round(answer.astype(np.float64), 5).tolist(),
    }


def head_card(graph: Graph, content: bytes) -> dict[str, Any]:
    """Return the card's entry for one head."""
    tensors = {
        graph.head.candidates_input: ["B", graph.head.features, graph.head.axis],
        CONTEXT_INPUT: ["B", CONTEXT],
        OUTPUT: ["B", graph.head.axis],
    }
    card = [{"name": n, "dtype": "float32", "shape": s} for n, s in tensors.items()]
    real = (value.size for value in graph.tensors.values() if value.dtype == np.float32)
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "inputs": card[:2],
        "outputs": card[2:],
        "parameters": sum(real),
        "sample": sample(graph.head),
    }


def make_card(heads: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the card of the untrained prior."""
    return {
        "name": "prior",
        "encoding_version": ENCODING_VERSION,
        "untrained": True,
        "trained_on": "nothing: the rules weighted-cost (where), planned-window (when) and "
        "full-speed (how_fast), each with a residual net that adds zero",
        "seeds": [seed],
        "command": f"python policies/train/export_prior.py --seed {seed}",
        "commit": None,
        "evaluation": {},
        "heads": heads,
    }


def export(folder: Path, seed: int = SEED) -> None:
    """Write the graphs and `card.json` into `folder`, the same bytes for the same seed."""
    folder.mkdir(parents=True, exist_ok=True)
    heads = {}
    for graph in graphs(seed):
        content = build_graph(graph).SerializeToString(deterministic=True)
        (folder / graph.head.file).write_bytes(content)
        heads[graph.head.name] = head_card(graph, content)
    card = json.dumps(make_card(heads, seed), indent=1) + "\n"
    (folder / CARD_FILE).write_text(card, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=SHIPPED_PRIOR)
    parser.add_argument("--seed", type=int, default=SEED)
    arguments = parser.parse_args()
    export(arguments.out, arguments.seed)
