"""Loads and checks bundles: folders with `card.json` and a graph for each head.

The checks go from cheap to expensive: the card, the file's size and hash, the graph's operators and
shapes, then its answers and their speed. Each refusal is a BundleError. All heads that the card
names are checked, not only the needed ones: an incomplete bundle is refused.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime

from greensched_core.quoting import near, quoted
from greensched_policies.encoding.observation import CONTEXT_FEATURES, ENCODING_VERSION
from greensched_policies.learned.card import (
    CARD_FILE,
    BundleError,
    Card,
    HeadCard,
    parse_card,
    read_limited,
)
from greensched_policies.learned.graph_file import read_graph_facts
from greensched_policies.learned.heads import HEADS, WHEN, WHERE, Head
from greensched_policies.learned.onnx_policy import CONTEXT_INPUT, OUTPUT, OnnxPolicy, open_session
from greensched_policies.learned.protobuf import NotOnnx
from greensched_policies.learned.runners import (
    HeadPolicy,
    HeadRun,
    TriedDecisions,
    choose_runner,
)
from greensched_policies.library.nets import Float32s

MAX_GRAPH_BYTES = 4 << 20  # a million float32 weights; the prior's heads have less than 1,000 each
SELF_TEST_RUNS = 5
SAMPLE_TOLERANCE = 1e-4
_RANDOM_SIZES = ((1, 1), (2, 7), (1, 420))  # decisions and candidates


@dataclass(frozen=True, slots=True)
class CheckedHead:
    """One head of a bundle, ready to answer."""

    run: HeadRun
    graph_bytes: int
    self_test_s: float  # the fastest of the timed runs, with as many candidates as `Head.most`


@dataclass(frozen=True, slots=True)
class Bundle:
    """A checked bundle, ready to answer."""

    folder: Path
    card: Card
    heads: Mapping[str, CheckedHead]  # by name, in the order of HEADS

    @property
    def where(self) -> HeadPolicy:
        """The `where` head; raises BundleError if the bundle has none."""
        return self._policy(WHERE)

    @property
    def when(self) -> HeadPolicy:
        """The `when` head; raises BundleError if the bundle has none."""
        return self._policy(WHEN)

    @property
    def runners(self) -> dict[str, str]:
        """What computes each head, as a word of `Runner`."""
        return {name: head.run.runner.value for name, head in self.heads.items()}

    @property
    def not_in_kernel(self) -> dict[str, str]:
        """Why the compiled library does not compute a head, of those that it does not."""
        reasons = {name: head.run.reason for name, head in self.heads.items()}
        return {name: reason for name, reason in reasons.items() if reason}

    def _policy(self, head: Head) -> HeadPolicy:
        if head.name not in self.heads:
            raise _missing(self.folder, head.name)
        return self.heads[head.name].run.policy


def load_bundle(
    folder: Path,
    *,
    needs: Sequence[str] = (WHERE.name,),
    self_test_limit_s: float | None = None,
    monotonic: Callable[[], float] = time.perf_counter,
) -> Bundle:
    """Return the fully checked bundle in `folder`; raises BundleError, and only that, on a fault.

    The bundle must have the heads in `needs`, or at least one head if that is empty. Without
    `self_test_limit_s` each head's own limit holds.
    """
    try:
        return _load(folder, needs, self_test_limit_s, monotonic)
    except BundleError:
        raise
    except Exception as error:  # a foreign file may make any step fail
        raise BundleError(
            f"{folder}: cannot be loaded ({type(error).__name__}: {error}); export it again"
        ) from error


def _load(
    folder: Path,
    needs: Sequence[str],
    self_test_limit_s: float | None,
    monotonic: Callable[[], float],
) -> Bundle:
    card = read_card(folder, needs)
    heads = {}
    for name, head in HEADS.items():
        if name in card.heads:
            limit_s = head.limit_s if self_test_limit_s is None else self_test_limit_s
            heads[name] = _load_head(folder, head, card.heads[name], limit_s, monotonic)
    return Bundle(folder, card, heads)


def _load_head(
    folder: Path, head: Head, card: HeadCard, limit_s: float, monotonic: Callable[[], float]
) -> CheckedHead:
    path = folder / head.file
    graph = read_limited(path, MAX_GRAPH_BYTES)
    _check_hash(graph, card, path)
    _check_contents(graph, card, path)
    try:
        policy = OnnxPolicy(open_session(graph), head.candidates_input)
    except Exception as error:  # onnxruntime raises its own type per failure
        raise BundleError(
            f"{path}: onnxruntime cannot load the graph ({error}); export it again"
        ) from error
    _check_shapes(policy.session, head, path)
    sample = _check_sample(policy, head, card, path)
    tried = [sample, *_random_decisions(head)]
    _check_random(policy, tried[1:], path)
    found = choose_runner(graph, head, policy, tried)
    self_test_s = _fastest_run(found.policy, head, path, monotonic)
    if self_test_s > limit_s:
        raise BundleError(
            f"{path}: {head.most} candidates take {self_test_s * 1e3:.1f} ms, "
            f"the limit is {limit_s * 1e3:.1f} ms; use a smaller net"
        )
    return CheckedHead(found, len(graph), self_test_s)


def read_card(folder: Path, needs: Sequence[str] = (WHERE.name,)) -> Card:
    """Return the card of a bundle; raises BundleError if it cannot be used with this code.

    A card that lacks a needed head, or has no known head, cannot be used either.
    """
    path, card = folder / CARD_FILE, parse_card(folder)
    if card.encoding_version != ENCODING_VERSION:
        raise BundleError(
            f"{path}: made for encoding version {card.encoding_version}, this release has "
            f"{ENCODING_VERSION}; train or export it again with this release"
        )
    for name in card.heads:
        if name not in HEADS:
            raise BundleError(
                f"{path}: heads: there is no head {quoted(name)}{near(name, HEADS)}; heads are "
                f"{', '.join(HEADS)}"
            )
    for name in needs:
        if name not in card.heads:
            raise _missing(path, name)
    if not any(name in card.heads for name in HEADS):
        raise _missing(path, "` or `".join(HEADS))
    return card


def _missing(path: Path, head: str) -> BundleError:
    return BundleError(f"{path}: heads: `{head}` is missing; export the bundle again")


def _check_hash(graph: bytes, head: HeadCard, path: Path) -> None:
    digest = hashlib.sha256(graph).hexdigest()
    if digest != head.sha256:
        raise BundleError(
            f"{path}: sha256 is {digest}, the card says {head.sha256}; copy all files of one "
            "bundle again"
        )


def _check_contents(graph: bytes, head: HeadCard, path: Path) -> None:
    try:
        facts = read_graph_facts(graph)
    except NotOnnx as error:
        raise BundleError(f"{path}: not an ONNX graph: {error}; export it again") from error
    faults = []
    if facts.has_external_data:
        faults.append("weights are in another file; save them inside the graph")
    if facts.has_subgraphs:
        faults.append("it has subgraphs or functions (If, Loop, Scan); inline them")
    if facts.domains:
        faults.append(f"it uses operators of {sorted(facts.domains)}; only ONNX's own are allowed")
    if facts.unknown_operators:
        faults.append(f"operators {facts.unknown_operators} are not allowed")
    if facts.incomplete:
        faults.append(f"operators {sorted(facts.incomplete)} lack an input")
    if facts.has_unreadable_tensors:
        faults.append("a tensor's type or layout is not allowed; use dense float32")
    if facts.not_finite:
        faults.append(f"NaN or infinity in {facts.not_finite}; train it again")
    if facts.parameters != head.parameters:
        faults.append(f"it has {facts.parameters} parameters, the card says {head.parameters}")
    if faults:
        raise BundleError(f"{path}: {'; '.join(faults)}")


def _check_shapes(session: onnxruntime.InferenceSession, head: Head, path: Path) -> None:
    inputs = {value.name: value for value in session.get_inputs()}
    outputs = {value.name: value for value in session.get_outputs()}
    if set(inputs) != {head.candidates_input, CONTEXT_INPUT} or OUTPUT not in outputs:
        raise BundleError(
            f"{path}: inputs {sorted(inputs)} and outputs {sorted(outputs)}, expected are "
            f"{sorted([CONTEXT_INPUT, head.candidates_input])} and [{OUTPUT!r}]; export it again"
        )
    wanted = (
        (inputs[head.candidates_input], (None, head.features, None)),
        (inputs[CONTEXT_INPUT], (None, len(CONTEXT_FEATURES))),
        (outputs[OUTPUT], (None, None)),
    )
    for value, shape in wanted:
        # An axis without a number, with or without a name, is dynamic.
        found = tuple(size if isinstance(size, int) else None for size in value.shape)
        if found != shape or value.type != "tensor(float)":
            raise BundleError(
                f"{path}: `{value.name}` is {value.type} of shape {found}, expected is "
                f"tensor(float) of shape {shape} (None: dynamic); the layout is {head.layout}; "
                "export it again"
            )


def _check_sample(
    policy: OnnxPolicy, head: Head, card: HeadCard, path: Path
) -> tuple[Float32s, Float32s]:
    """Return the card's sample: candidates and context."""
    sample = card.sample
    given = getattr(sample, head.candidates_input)
    if given is None:
        raise BundleError(
            f"{path}: the card's sample has no `{head.candidates_input}`; export it again"
        )
    try:
        candidates, context, wanted = (
            np.array(values, dtype=np.float32)
            for values in (given, sample.context, sample.relative_cost)
        )
    except ValueError as error:
        raise BundleError(f"{path}: the card's sample is not an array; export it again") from error
    if candidates.shape != (*wanted.shape, head.features) or context.shape != (
        len(candidates),
        len(CONTEXT_FEATURES),
    ):
        raise BundleError(
            f"{path}: the card's sample has shapes {candidates.shape}, {context.shape} and "
            f"{wanted.shape}; export it again"
        )
    found = _run(policy, candidates, context, path)
    difference = np.inf
    if found.shape == wanted.shape and found.size:
        difference = float(np.abs(found - wanted).max())
    if not difference <= SAMPLE_TOLERANCE:
        raise BundleError(
            f"{path}: the graph's answer to the card's sample differs by {difference:.3g}, at "
            f"most {SAMPLE_TOLERANCE} is allowed; card and graph do not belong together"
        )
    return candidates, context


def _random_decisions(head: Head) -> TriedDecisions:
    rng, found = np.random.default_rng(0), []
    for batch, count in _RANDOM_SIZES:
        candidates = (rng.random((batch, count, head.features)) * 4.0 - 1.0).astype(np.float32)
        context = (rng.random((batch, len(CONTEXT_FEATURES))) * 4.0).astype(np.float32)
        found.append((candidates, context))
    return found


def _check_random(policy: OnnxPolicy, decisions: TriedDecisions, path: Path) -> None:
    for candidates, context in decisions:
        batch, count = candidates.shape[:2]
        found = _run(policy, candidates, context, path)
        if found.shape != (batch, count) or not np.isfinite(found).all():
            raise BundleError(
                f"{path}: {batch} decisions over {count} random candidates give shape "
                f"{found.shape} or costs that are not finite; train or export it again"
            )


def _fastest_run(
    policy: HeadPolicy, head: Head, path: Path, monotonic: Callable[[], float]
) -> float:
    candidates = np.ones((1, head.features, head.most), dtype=np.float32)
    candidates = candidates.transpose((0, 2, 1))  # the encoder's layout in memory
    context = np.ones((1, len(CONTEXT_FEATURES)), dtype=np.float32)
    fastest_s = float("inf")
    for _ in range(SELF_TEST_RUNS):
        started = monotonic()
        _run(policy, candidates, context, path)
        fastest_s = min(fastest_s, monotonic() - started)
    return fastest_s


def _run(policy: HeadPolicy, candidates: Float32s, context: Float32s, path: Path) -> Float32s:
    try:
        return policy(candidates, context)
    except Exception as error:  # onnxruntime raises its own type per failure
        raise BundleError(
            f"{path}: the graph fails on {candidates.shape[1]} candidates ({error}); "
            "export it again"
        ) from error
