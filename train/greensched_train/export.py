"""Writes nets as a bundle that extender, operator and simulator serve.

    python -m greensched_train.export [--out FOLDER]

writes the shipped prior: a rule for each head and a net that adds zero. The same seed gives the
same bytes.
"""

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from greensched_policies.encoding.observation import CONTEXT_FEATURES, ENCODING_VERSION
from greensched_policies.encoding.power_cap_observation import CAP, POWER_CAP_FEATURES
from greensched_policies.learned.bundle import load_bundle
from greensched_policies.learned.card import CARD_FILE, SHIPPED_PRIOR
from greensched_policies.learned.heads import HEADS, HOW_FAST, WHEN, WHERE, Head
from greensched_policies.learned.onnx_policy import CONTEXT_INPUT, OUTPUT
from greensched_policies.library.nets import CandidateNet
from greensched_train.checkpoints import write_whole
from greensched_train.graphs import Graph, graph_of, model_of
from greensched_train.residual_nets import Nets, ResidualNets, bare_net

PRIOR_SEED, PRIOR_HIDDEN = 20261121, (16, 16)
_IN_ORDER = (WHERE, WHEN, HOW_FAST)
_SAMPLE_SEED, _SAMPLED = 1, 4  # candidates in the sample of a card


class Origin(NamedTuple):
    """Where nets come from, as their card says."""

    name: str
    trained_on: str
    seeds: tuple[int, ...]
    command: str
    commit: str | None
    evaluation: dict[str, float]
    untrained: bool = False


def export(nets: Nets, origin: Origin, folder: Path) -> None:
    """Write a bundle, and check it as those do that serve it.

    The card is written last: a folder without one is no bundle. Raises BadInput if it cannot be
    written, and BundleError if it would be refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cards = {}
    for head in _IN_ORDER:
        graph = graph_of(nets[head.name], head)
        content = model_of(graph).SerializeToString(deterministic=True)
        write_whole(folder / head.file, content)
        cards[head.name] = head_card(graph, content, net_costs(nets[head.name], *sample_of(head)))
    card = json.dumps(card_of(cards, origin), indent=1) + "\n"
    write_whole(folder / CARD_FILE, card.encode())
    load_bundle(folder, needs=tuple(HEADS))


def net_costs(net: CandidateNet, candidates: Any, context: Any) -> Any:
    """Return the costs [B,N] of candidates [B,N,F] by a net, in float64: see `library/nets.py`."""
    coefficients = context @ net.placed / np.maximum(context @ net.total, net.least)[:, None]
    costs = net.offset + np.einsum("bnf,bf->bn", candidates, net.own + coefficients)
    if net.overload is not None:
        weighted, busiest = (
            candidates[..., net.overload.weighted],
            candidates[..., net.overload.busiest],
        )
        spread = weighted.max(axis=1, keepdims=True) - weighted.min(axis=1, keepdims=True)
        dearer = net.overload.overload * (net.overload.one + spread) * busiest
        costs = costs + dearer * (busiest > net.overload.full)
    if net.layers:
        first, *others = net.layers
        values = candidates @ first.weights.T + (context @ net.of_context + first.biases)[:, None]
        for layer in others:
            values = np.maximum(values, 0.0) @ layer.weights.T + layer.biases
        costs = costs + values[..., 0]
    return costs


def sample_of(head: Head) -> tuple[Any, Any]:
    """Return candidates [1,4,F] and a context [1,15] whose answer the card has."""
    dice = np.random.default_rng(_SAMPLE_SEED)
    candidates = np.round(dice.random((1, _SAMPLED, head.features)) * 2.0, 3)
    return candidates, np.round(dice.random((1, len(CONTEXT_FEATURES))), 3)


def head_card(graph: Graph, content: bytes, answer: Any) -> dict[str, Any]:
    """Return the card's entry for one head; `answer`, [1,4], is what it gives its sample."""
    head, (candidates, context) = graph.head, sample_of(graph.head)
    tensors = {
        head.candidates_input: ["B", head.features, head.axis],
        CONTEXT_INPUT: ["B", len(CONTEXT_FEATURES)],
        OUTPUT: ["B", head.axis],
    }
    shapes = [{"name": n, "dtype": "float32", "shape": s} for n, s in tensors.items()]
    real = (value.size for value in graph.tensors.values() if value.dtype == np.float32)
    return {
        "sha256": hashlib.sha256(content).hexdigest(),
        "inputs": shapes[:2],
        "outputs": shapes[2:],
        "parameters": sum(real),
        "sample": {
            head.candidates_input: candidates.tolist(),
            "context": context.tolist(),
            "relative_cost": np.round(answer, 5).tolist(),
        },
    }


def card_of(heads: dict[str, Any], origin: Origin) -> dict[str, Any]:
    """Return the content of a card."""
    return {
        "name": origin.name,
        "encoding_version": ENCODING_VERSION,
        "untrained": origin.untrained,
        "trained_on": origin.trained_on,
        "seeds": list(origin.seeds),
        "command": origin.command,
        "commit": origin.commit,
        "evaluation": origin.evaluation,
        "heads": heads,
    }


def export_prior(folder: Path) -> None:
    """Write the bundle that decides like the rules of its name."""
    residual = ResidualNets(PRIOR_HIDDEN)
    nets = residual.nets_of(residual.initial(np.random.default_rng(PRIOR_SEED)))
    cap_net = bare_net(len(POWER_CAP_FEATURES))
    cap_net.own[CAP] = -1.0
    learned = nets["how_fast"]
    nets["how_fast"] = cap_net._replace(
        offset=1.0, of_context=learned.of_context, layers=learned.layers
    )
    trained_on = (
        "nothing: the rules weighted-cost (where), planned-window (when) and full-speed "
        "(how_fast), each with a residual net that adds zero"
    )
    command = "python -m greensched_train.export"
    export(nets, Origin("prior", trained_on, (PRIOR_SEED,), command, None, {}, True), folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=SHIPPED_PRIOR)
    export_prior(parser.parse_args().out)
