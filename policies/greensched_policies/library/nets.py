"""The nets that the library computes: what they may contain, and how compiled code reads them.

A net scores a set of candidates. With x the features of a candidate and c the context of all,

    cost = offset + Σ_f (own_f + (c · placed)_f / max(c · total, least)) · x_f
         + overload · (one + max w − min w) · b · (b > full), w and b two of the features
         + a chain of dense layers of x and c, with Relu between them, down to one unit

Any of the three may be absent. So rules of a weighted sum are nets too, and a trained bundle is a
rule and its correction.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Integers
from greensched_policies.library.loading import address_of, call

LANES = 16  # candidates that are computed together
TOGETHER = 4  # units of a layer that are computed together
# Places in `PackedNet.sizes`; from WIDTHS on, the units of each hidden layer.
FEATURES, SHARED, HIDDEN, WEIGHTED, BUSIEST, WIDTHS = range(6)
# Places in `PackedNet.numbers`; from SEGMENTS on: own [F], total [C], placed [C,F], the context's
# part of the first layer [C,U], and the layers. All but the last are in groups of TOGETHER units:
# their biases, then their weights of each input. U counts the units with those that fill up.
OFFSET, LEAST, ONE, OVERLOAD, ROOM_ENDS, SEGMENTS = range(6)
NO_OVERLOAD = -1  # in place of WEIGHTED and BUSIEST

Float32s = npt.NDArray[np.float32]


class DenseLayer(NamedTuple):
    """A dense layer, float32."""

    weights: Float32s  # [units,inputs]
    biases: Float32s  # [units]


class Overload(NamedTuple):
    """What a candidate beyond the capacity costs."""

    weighted: int  # the feature whose spread counts
    busiest: int  # the feature that is compared with `full`
    one: float
    overload: float
    full: float


class CandidateNet(NamedTuple):
    """A net in parts: F features, C of the context; see above."""

    offset: float
    own: Float32s  # [F]
    placed: Float32s  # [C,F]
    total: Float32s  # [C]
    least: float
    overload: Overload | None
    of_context: Float32s  # [C,units of the first layer]
    layers: Sequence[DenseLayer]  # none, or at least two; the last has one unit


class PackedNet(NamedTuple):
    """A net as compiled code reads it."""

    sizes: Integers
    numbers: Float32s


NO_NET = PackedNet(np.zeros(0, np.int64), np.zeros(0, np.float32))  # a rule gives the costs


def packed(net: CandidateNet) -> PackedNet:
    """Return a net as compiled code reads it."""
    shared, features = net.placed.shape
    hidden = net.layers[:-1]
    of_overload = net.overload or Overload(NO_OVERLOAD, NO_OVERLOAD, 0.0, 0.0, 0.0)
    weighted, busiest, *of_load = of_overload
    widths = [each.biases.size for each in hidden]
    first = _filled_up(net.of_context.T).T if hidden else np.empty((shared, 0))
    last = [net.layers[-1].biases, net.layers[-1].weights[0]] if net.layers else []
    parts = [
        [net.offset, net.least, *of_load], net.own, net.total, net.placed, first,
        *map(_grouped, hidden), *last,
    ]  # fmt: skip
    return PackedNet(
        np.array([features, shared, len(hidden), weighted, busiest, *widths], np.int64),
        np.concatenate([np.ravel(part) for part in parts]).astype(np.float32),
    )


def _grouped(layer: DenseLayer) -> Float32s:
    """Return a layer's numbers in groups of units: their biases, then their weights by input."""
    rows = _filled_up(np.concatenate([layer.biases[:, None], layer.weights], axis=1))
    grouped = rows.reshape(-1, TOGETHER, rows.shape[1]).transpose((0, 2, 1))
    return np.ascontiguousarray(grouped)


def _filled_up(rows: Float32s) -> Float32s:
    """Return rows of units with as many zero rows as fill up the last group."""
    return np.pad(rows, ((0, -len(rows) % TOGETHER), (0, 0)))


class KernelNet:
    """Computes a net in the library, with the signature of a policy; any thread may call it."""

    def __init__(self, net: CandidateNet) -> None:
        self._packed = packed(net)
        self._shared, self._features = net.placed.shape
        sizes, numbers = self._packed
        self._given = [
            sizes.size, address_of(sizes, np.int64), numbers.size, address_of(numbers, np.float32),
        ]  # fmt: skip

    def __call__(self, candidates: Float32s, context: Float32s) -> Float32s:
        """Return the relative cost [B,N] for candidates [B,N,features] and the context [B,15].

        Candidates that are feature-major in memory are not copied. Raises ValueError for other
        shapes.
        """
        batch, count, features = candidates.shape
        if features != self._features or context.shape != (batch, self._shared):
            raise ValueError(
                f"candidates {candidates.shape} and context {context.shape}: the net has "
                f"{self._features} and {self._shared} features"
            )
        rows = np.ascontiguousarray(candidates.transpose((0, 2, 1)), np.float32)
        shared = np.ascontiguousarray(context, np.float32)
        costs = np.empty((batch, count), np.float32)
        arrays = (address_of(each, np.float32) for each in (rows, shared, costs))
        call("rate_candidates", [*self._given, batch, count, *arrays], [])
        return costs
