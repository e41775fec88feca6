"""Decides what computes a checked graph: the compiled library if it can, else onnxruntime.

A bundle stays ONNX, and onnxruntime stays what is right: the library must give the same answers.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple, TypeAlias

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.learned.heads import Head
from greensched_policies.learned.known_nets import AnotherShape, known_net
from greensched_policies.learned.protobuf import NotOnnx
from greensched_policies.library.nets import CandidateNet, Float32s, KernelNet

SAME_ANSWER = 1e-5  # of the largest cost, or of 1, which costs are relative to

# (candidates [B,N,features], context [B,15]) -> relative cost [B,N], lower is better
HeadPolicy: TypeAlias = Callable[[Float32s, Float32s], Float32s]
TriedDecisions: TypeAlias = Sequence[tuple[Float32s, Float32s]]  # what a head is asked


class Runner(StrEnum):
    """What computes a graph."""

    KERNEL = "kernel"  # the compiled library
    ONNXRUNTIME = "onnxruntime"


class HeadRun(NamedTuple):
    """A head that answers, and what computes it."""

    policy: HeadPolicy
    runner: Runner
    reason: str = ""  # why the library does not compute it
    net: CandidateNet | None = None  # as the library computes it


def choose_runner(
    graph: bytes, head: Head, in_onnxruntime: HeadPolicy, tried: TriedDecisions
) -> HeadRun:
    """Return the head as the library computes it, if that answers the decisions tried the same."""
    try:
        net = known_net(graph, head)
        in_kernel = KernelNet(net)
        difference = max(_difference(in_kernel, in_onnxruntime, *each) for each in tried)
    except (AnotherShape, BadInput, NotOnnx) as fault:
        return HeadRun(in_onnxruntime, Runner.ONNXRUNTIME, str(fault))
    if not difference <= SAME_ANSWER:
        reason = f"the library's costs differ by {difference:.3g}, more than {SAME_ANSWER:g}"
        return HeadRun(in_onnxruntime, Runner.ONNXRUNTIME, reason)
    return HeadRun(in_kernel, Runner.KERNEL, net=net)


def _difference(
    one: HeadPolicy, other: HeadPolicy, candidates: Float32s, context: Float32s
) -> float:
    wanted = other(candidates, context)
    scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    return float(np.abs(one(candidates, context) - wanted).max(initial=0.0)) / scale
