"""Compiled code, such as the simulator's engine, calls nets without Python in between."""

import numpy as np
import pytest

from greensched_policies.compiling.compiled import fast
from greensched_policies.encoding.observation import CONTEXT_FEATURES, NODE_FEATURES
from greensched_policies.kernel.nets import empty_net_scratch, rate_candidates
from greensched_policies.library.nets import (
    CandidateNet,
    DenseLayer,
    Float32s,
    KernelNet,
    PackedNet,
    packed,
)

FEATURES, SHARED = len(NODE_FEATURES), len(CONTEXT_FEATURES)


def random_net(*units: int) -> CandidateNet:
    """Return a net of random numbers with these hidden layers, without a rule."""
    dice = np.random.default_rng(1)
    inputs = (FEATURES, *units)
    layers = [
        DenseLayer(dice.random((above, below), np.float32), dice.random(above, np.float32))
        for below, above in zip(inputs, (*units, 1), strict=True)
    ]
    nothing = np.zeros((SHARED, FEATURES), np.float32)
    of_context = dice.random((SHARED, units[0]), np.float32)
    return CandidateNet(0.5, nothing[0], nothing, nothing[:, 0], 1.0, None, of_context, layers)


@fast
def rated(net: PackedNet, features: Float32s, context: Float32s, costs: Float32s) -> None:
    """Do what an engine does: keep working memory, and rate the first of its candidates."""
    scratch = empty_net_scratch(net)
    for _ in range(2):
        rate_candidates(net, features, context, scratch, costs)


@pytest.mark.parametrize("count", [1, 16, 23])
def test_the_engine_and_the_library_give_the_first_candidates_the_same_costs(count: int) -> None:
    dice, net = np.random.default_rng(2), random_net(5, 8)
    features = dice.random((FEATURES, 40), np.float32)  # room for more than there are
    context, costs = dice.random(SHARED, np.float32), np.empty(count, np.float32)
    rated(packed(net), features, context, costs)
    wanted = KernelNet(net)(features[None, :, :count].transpose((0, 2, 1)), context[None])
    assert np.allclose(costs, wanted[0], rtol=1e-5)
