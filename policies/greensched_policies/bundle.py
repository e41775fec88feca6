"""A bundle is a folder with `where.onnx` and `card.json`; loading refuses every wrong one.

The checks go from cheap to dear: the card, the file's size and hash, what the graph is made
of, its shapes, then what it answers and how fast. Each refusal is a BundleError.
"""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
from pydantic import ValidationError

from greensched_core.errors import BadInput
from greensched_policies.card import Card, HeadCard
from greensched_policies.graph_file import NotOnnx, read_graph_facts
from greensched_policies.observation import CONTEXT_FEATURES, ENCODING_VERSION, NODE_FEATURES
from greensched_policies.onnx_policy import (
    CONTEXT_INPUT,
    NODES_INPUT,
    OUTPUT,
    OnnxPolicy,
    open_session,
)

CARD_FILE = "card.json"
WHERE_FILE = "where.onnx"
MAX_CARD_BYTES = 1 << 20
MAX_GRAPH_BYTES = 4 << 20  # a million float32 weights; the prior has 826
SELF_TEST_CANDIDATES = 5_000
SELF_TEST_LIMIT_S = 0.1  # five times the default model budget: start-up runs on a busy machine
SELF_TEST_RUNS = 5
SAMPLE_TOLERANCE = 1e-4
_LAYOUT = f"nodes [B,{len(NODE_FEATURES)},N], context [B,{len(CONTEXT_FEATURES)}], costs [B,N]"
SHIPPED_PRIOR = Path(__file__).parent / "models" / "prior"


class BundleError(BadInput):
    """A bundle that must not be served; the message says what, where and what to do."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle, ready to answer."""

    folder: Path
    card: Card
    where: OnnxPolicy
    graph_bytes: int
    self_test_s: float  # the fastest of the timed runs at 5,000 candidates


def load_bundle(
    folder: Path,
    *,
    self_test_limit_s: float = SELF_TEST_LIMIT_S,
    monotonic: Callable[[], float] = time.perf_counter,
) -> Bundle:
    """Return the bundle in `folder`, fully checked; raises BundleError otherwise, and only that."""
    try:
        return _load(folder, self_test_limit_s, monotonic)
    except BundleError:
        raise
    except Exception as error:  # a file made by others: no list of what it can upset is complete
        raise BundleError(
            f"{folder}: cannot be loaded ({type(error).__name__}: {error}); export it again"
        ) from error


def _load(folder: Path, self_test_limit_s: float, monotonic: Callable[[], float]) -> Bundle:
    card = read_card(folder)
    head = card.heads["where"]
    graph_path = folder / WHERE_FILE
    graph = _read_limited(graph_path, MAX_GRAPH_BYTES)
    _check_hash(graph, head, graph_path)
    _check_contents(graph, head, graph_path)
    try:
        policy = OnnxPolicy(open_session(graph))
    except Exception as error:  # onnxruntime raises types of its own, one per failure
        raise BundleError(
            f"{graph_path}: onnxruntime cannot load the graph ({error}); export it again"
        ) from error
    _check_shapes(policy.session, graph_path)
    _check_sample(policy, head, graph_path)
    _check_random(policy, graph_path)
    self_test_s = _fastest_run(policy, graph_path, monotonic)
    if self_test_s > self_test_limit_s:
        raise BundleError(
            f"{graph_path}: {SELF_TEST_CANDIDATES} candidates take {self_test_s * 1e3:.1f} ms, "
            f"the limit is {self_test_limit_s * 1e3:.1f} ms; use a smaller net"
        )
    return Bundle(folder, card, policy, len(graph), self_test_s)


def read_card(folder: Path) -> Card:
    """Return the card of a bundle; raises BundleError if it cannot be used with this code."""
    path = folder / CARD_FILE
    try:
        card = Card.model_validate_json(_read_limited(path, MAX_CARD_BYTES))
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'card'}: {fault['msg']}"
            for fault in error.errors()
        )
        raise BundleError(f"{path}: {faults}; export the bundle again") from error
    if card.encoding_version != ENCODING_VERSION:
        raise BundleError(
            f"{path}: made for encoding version {card.encoding_version}, this release has "
            f"{ENCODING_VERSION}; train or export it again with this release"
        )
    if "where" not in card.heads:
        raise BundleError(f"{path}: heads: `where` is missing; export the bundle again")
    return card


def _read_limited(path: Path, limit_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(limit_bytes + 1)
    except OSError as error:
        raise BundleError(
            f"{path}: cannot be read ({error.strerror}); a bundle is a folder with "
            f"{WHERE_FILE} and {CARD_FILE}"
        ) from error
    if len(content) > limit_bytes:
        raise BundleError(f"{path}: larger than {limit_bytes} bytes; use a smaller net")
    return content


def _check_hash(graph: bytes, head: HeadCard, path: Path) -> None:
    digest = hashlib.sha256(graph).hexdigest()
    if digest != head.sha256:
        raise BundleError(
            f"{path}: sha256 is {digest}, the card says {head.sha256}; copy both files of one "
            "bundle again"
        )


def _check_contents(graph: bytes, head: HeadCard, path: Path) -> None:
    try:
        facts = read_graph_facts(graph)
    except NotOnnx as error:
        raise BundleError(f"{path}: no ONNX graph: {error}; export it again") from error
    faults = []
    if facts.has_external_data:
        faults.append("weights lie in another file; save them inside the graph")
    if facts.has_subgraphs:
        faults.append("it has subgraphs or functions (If, Loop, Scan); inline them")
    if facts.domains:
        faults.append(f"it needs operators of {sorted(facts.domains)}; use ONNX's own")
    if facts.unknown_operators:
        faults.append(f"operators {facts.unknown_operators} are not allowed")
    if facts.has_unreadable_tensors:
        faults.append("a tensor's type or layout is not allowed; use dense float32")
    if facts.not_finite:
        faults.append(f"NaN or infinity in {facts.not_finite}; train it again")
    if facts.parameters != head.parameters:
        faults.append(f"it has {facts.parameters} parameters, the card says {head.parameters}")
    if faults:
        raise BundleError(f"{path}: {'; '.join(faults)}")


def _check_shapes(session: onnxruntime.InferenceSession, path: Path) -> None:
    inputs = {value.name: value for value in session.get_inputs()}
    outputs = {value.name: value for value in session.get_outputs()}
    if set(inputs) != {NODES_INPUT, CONTEXT_INPUT} or OUTPUT not in outputs:
        raise BundleError(
            f"{path}: inputs {sorted(inputs)} and outputs {sorted(outputs)}, needed are "
            f"{[CONTEXT_INPUT, NODES_INPUT]} and [{OUTPUT!r}]; export it again"
        )
    wanted = (
        (inputs[NODES_INPUT], (None, len(NODE_FEATURES), None)),
        (inputs[CONTEXT_INPUT], (None, len(CONTEXT_FEATURES))),
        (outputs[OUTPUT], (None, None)),
    )
    for value, shape in wanted:
        # A name or nothing in place of a number is a dynamic axis.
        found = tuple(size if isinstance(size, int) else None for size in value.shape)
        if found != shape or value.type != "tensor(float)":
            raise BundleError(
                f"{path}: `{value.name}` is {value.type} of shape {found}, needed is "
                f"tensor(float) of shape {shape} (None: dynamic); the layout is {_LAYOUT}; "
                "export it again"
            )


def _check_sample(policy: OnnxPolicy, head: HeadCard, path: Path) -> None:
    try:
        nodes, context, wanted = (
            np.array(values, dtype=np.float32)
            for values in (head.sample.nodes, head.sample.context, head.sample.relative_cost)
        )
    except ValueError as error:
        raise BundleError(f"{path}: the card's sample is no array; export it again") from error
    if nodes.shape != (*wanted.shape, len(NODE_FEATURES)) or context.shape != (
        len(nodes),
        len(CONTEXT_FEATURES),
    ):
        raise BundleError(
            f"{path}: the card's sample has shapes {nodes.shape}, {context.shape} and "
            f"{wanted.shape}; export it again"
        )
    found = _run(policy, nodes, context, path)
    difference = np.inf
    if found.shape == wanted.shape and found.size:
        difference = float(np.abs(found - wanted).max())
    if not difference <= SAMPLE_TOLERANCE:
        raise BundleError(
            f"{path}: the card's sample is answered with a difference of {difference:.3g}, at "
            f"most {SAMPLE_TOLERANCE} is allowed; card and graph do not belong together"
        )


def _check_random(policy: OnnxPolicy, path: Path) -> None:
    rng = np.random.default_rng(0)
    for batch, count in ((1, 1), (2, 7), (1, 420)):
        nodes = (rng.random((batch, count, len(NODE_FEATURES))) * 4.0 - 1.0).astype(np.float32)
        context = (rng.random((batch, len(CONTEXT_FEATURES))) * 4.0).astype(np.float32)
        found = _run(policy, nodes, context, path)
        if found.shape != (batch, count) or not np.isfinite(found).all():
            raise BundleError(
                f"{path}: {batch} decisions over {count} random candidates give shape "
                f"{found.shape} or costs that are not finite; train or export it again"
            )


def _fastest_run(policy: OnnxPolicy, path: Path, monotonic: Callable[[], float]) -> float:
    nodes = np.ones((1, len(NODE_FEATURES), SELF_TEST_CANDIDATES), dtype=np.float32)
    nodes = nodes.transpose((0, 2, 1))  # in memory as `encode_where` lays it out
    context = np.ones((1, len(CONTEXT_FEATURES)), dtype=np.float32)
    fastest_s = float("inf")
    for _ in range(SELF_TEST_RUNS):
        started = monotonic()
        _run(policy, nodes, context, path)
        fastest_s = min(fastest_s, monotonic() - started)
    return fastest_s


def _run(
    policy: OnnxPolicy,
    nodes: npt.NDArray[np.float32],
    context: npt.NDArray[np.float32],
    path: Path,
) -> npt.NDArray[np.float32]:
    try:
        return policy(nodes, context)
    except Exception as error:  # onnxruntime raises types of its own, one per failure
        raise BundleError(
            f"{path}: the graph fails on {nodes.shape[1]} candidates ({error}); export it again"
        ) from error
