"""Exported graphs are the nets that they were made of, for all who read them."""

import numpy as np
import onnxruntime
import pytest

from greensched_policies.encoding.observation import CONTEXT_FEATURES
from greensched_policies.learned.heads import HEADS, Head
from greensched_policies.learned.known_nets import known_net
from greensched_policies.library.nets import CandidateNet
from greensched_train.export import net_costs
from greensched_train.graphs import graph_of, model_of
from greensched_train.residual_nets import ResidualNets


def net_of(head: Head, hidden: tuple[int, ...], seed: int) -> CandidateNet:
    """Return a net whose parameters, all of them, are random."""
    dice = np.random.default_rng(seed)
    residual = ResidualNets(hidden)
    net = residual.nets_of(dice.normal(0.0, 0.5, residual.size))[head.name]
    return net._replace(offset=float(np.float32(dice.normal())))


@pytest.mark.parametrize("hidden", [(5,), (16, 8), (4, 6, 3)])
@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_the_library_and_onnxruntime_read_what_was_exported(
    head: Head, hidden: tuple[int, ...]
) -> None:
    net = net_of(head, hidden, 3)
    content = model_of(graph_of(net, head)).SerializeToString()
    read = known_net(content, head)
    for name in ("own", "placed", "total", "of_context"):
        np.testing.assert_array_equal(getattr(read, name), getattr(net, name))
    assert read.least == pytest.approx(net.least)
    assert (read.overload is None) == (net.overload is None)
    if read.overload is not None and net.overload is not None:
        assert tuple(read.overload) == pytest.approx(tuple(net.overload))
    for ours, theirs in zip(net.layers, read.layers, strict=True):
        np.testing.assert_array_equal(ours.weights, theirs.weights)
    for ours, theirs in zip(net.layers[:-1], read.layers, strict=False):
        np.testing.assert_array_equal(ours.biases, theirs.biases)
    assert read.offset == pytest.approx(net.offset + float(net.layers[-1].biases[0]))
    dice = np.random.default_rng(4)
    candidates = dice.uniform(-1.0, 3.0, (2, 7, head.features))
    context = dice.uniform(0.0, 2.0, (2, len(CONTEXT_FEATURES)))
    given = {
        head.candidates_input: candidates.transpose((0, 2, 1)).astype(np.float32),
        "context": context.astype(np.float32),
    }
    answer = onnxruntime.InferenceSession(content).run(None, given)[0]
    np.testing.assert_allclose(answer, net_costs(net, candidates, context), rtol=1e-5, atol=1e-5)
