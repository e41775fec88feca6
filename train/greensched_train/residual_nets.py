"""The nets that are trained: for each head a rule, and a small net that corrects it.

    cost of a candidate = prior(candidate, context) + net(candidate, context)

The net has dense layers with Relu, shared by all candidates. Its last layer is zero at first, so
that training begins with the prior (Silver et al., "Residual Policy Learning", 2018).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import (
    CARBON,
    CONTEXT_FEATURES,
    COST,
    NODE_FEATURES,
    SLOWDOWN,
    WEIGHT_CARBON,
    WEIGHT_COST,
    WEIGHT_PERFORMANCE,
)
from greensched_policies.encoding.power_cap_observation import (
    ENERGY_PER_WORK,
    KEEPS_DEADLINES,
    POWER_CAP_FEATURES,
)
from greensched_policies.encoding.slot_observation import (
    BUSIEST,
    SLOT_FEATURES,
    WEIGHTED_OVER_RUN,
)
from greensched_policies.encoding.slots import FULL, OVERLOAD_COST
from greensched_policies.library.nets import CandidateNet, DenseLayer, Overload
from greensched_policies.rules.where import LEAST_WEIGHT

_SHARED = len(CONTEXT_FEATURES)
# Far above any other cost of a power cap: none is chosen at which work would end late.
_LATE_COST = 10.0

NetParameters = npt.NDArray[np.float64]  # of all heads, one after the other
Nets = dict[str, CandidateNet]  # by head


def weighted_cost_prior() -> CandidateNet:
    """Return the rule weighted-cost, of the head `where`."""
    placed = np.zeros((_SHARED, len(NODE_FEATURES)), np.float32)
    placed[WEIGHT_COST, COST] = placed[WEIGHT_CARBON, CARBON] = 1.0
    placed[WEIGHT_PERFORMANCE, SLOWDOWN] = 1.0
    bare = bare_net(len(NODE_FEATURES))
    return bare._replace(placed=placed, total=placed.sum(axis=1), least=LEAST_WEIGHT)


def planned_window_prior() -> CandidateNet:
    """Return the rule planned-window, of the head `when`."""
    overload = Overload(WEIGHTED_OVER_RUN, BUSIEST, 1.0, OVERLOAD_COST, FULL)
    bare = bare_net(len(SLOT_FEATURES), overload)
    bare.own[WEIGHTED_OVER_RUN] = 1.0
    return bare


def frugal_prior() -> CandidateNet:
    """Return the rule cap-frugal, of the head `how_fast`: the least energy with all in time."""
    bare = bare_net(len(POWER_CAP_FEATURES))
    bare.own[ENERGY_PER_WORK], bare.own[KEEPS_DEADLINES] = 1.0, -_LATE_COST
    return bare


def priors() -> Nets:
    """Return the priors of all heads."""
    return {
        "when": planned_window_prior(),
        "where": weighted_cost_prior(),
        "how_fast": frugal_prior(),
    }


def bare_net(features: int, overload: Overload | None = None) -> CandidateNet:
    """Return a net of zero costs, without layers."""
    return CandidateNet(
        0.0, np.zeros(features, np.float32), np.zeros((_SHARED, features), np.float32),
        np.zeros(_SHARED, np.float32), 1.0, overload, np.zeros((_SHARED, 0), np.float32), (),
    )  # fmt: skip


class _Part(NamedTuple):
    """One array of parameters: its shape, and how many inputs a unit of it has."""

    shape: tuple[int, ...]
    inputs: int  # 0: begins as zero


class ResidualNets:
    """The parameters of the nets of all heads as one vector, and the nets of such a vector."""

    def __init__(self, hidden: Sequence[int]) -> None:
        """Give the units of the hidden layers; at least one layer."""
        self._hidden, self._priors = tuple(hidden), priors()
        self._parts = {name: self._parts_of(net.own.size) for name, net in self._priors.items()}
        self.size = sum(
            int(np.prod(part.shape)) for parts in self._parts.values() for part in parts
        )

    def _parts_of(self, features: int) -> list[_Part]:
        first, inputs = self._hidden[0], features + _SHARED
        parts = [_Part((first, features), inputs), _Part((_SHARED, first), inputs)]
        parts.append(_Part((first,), 0))
        for below, units in zip(self._hidden, self._hidden[1:], strict=False):
            parts += [_Part((units, below), below), _Part((units,), 0)]
        return [*parts, _Part((1, self._hidden[-1]), 0), _Part((1,), 0)]

    def initial(self, dice: np.random.Generator) -> NetParameters:
        """Return parameters with which each head decides as its prior.

        Weights are He-uniform (He et al., "Delving Deep into Rectifiers", ICCV 2015).
        """
        found = list[NetParameters]()
        for parts in self._parts.values():
            for part in parts:
                bound = np.sqrt(6.0 / part.inputs) if part.inputs else 0.0
                found.append((dice.random(int(np.prod(part.shape))) * 2.0 - 1.0) * bound)
        return np.concatenate(found)

    def nets_of(self, parameters: NetParameters) -> Nets:
        """Return the nets with these parameters, [size]."""
        found, at = Nets(), 0
        for name, parts in self._parts.items():
            arrays = []
            for part in parts:
                count = int(np.prod(part.shape))
                arrays.append(parameters[at : at + count].reshape(part.shape).astype(np.float32))
                at += count
            weights, of_context, biases, *rest = arrays
            layers = [DenseLayer(weights, biases)]
            layers += [DenseLayer(*pair) for pair in zip(rest[::2], rest[1::2], strict=True)]
            found[name] = self._priors[name]._replace(of_context=of_context, layers=layers)
        return found
