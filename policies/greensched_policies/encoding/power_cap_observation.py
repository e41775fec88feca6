"""The arrays that a learned `how fast` policy sees: one row of features per power cap of a node.

Watts are divided by the mean of the power caps, as inputs of `where` and `when` are by the mean of
their candidates. Part of the same ENCODING_VERSION.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import Floats, WorkloadColumns
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    context_columns,
    make_relative,
)
from greensched_policies.encoding.weights import Weights

POWER_CAP_FEATURES = (
    "power",  # watts above idle, relative to the mean power cap's
    "energy",  # of a second's work, with idle watts that end with it, relative
    "power_cap",  # 0..1, 1 without a cap
    "speed",  # of the slowest workload there, relative to no cap
    "keeps_deadlines",  # 1 if all running work is expected to end in time
    "dirtiness",  # carbon intensity now, relative to its forecast mean over the next day
)
_RELATIVE = 2  # the number of relative features, which come first


class PowerCapObservation(NamedTuple):
    """The input of a learned `how fast` policy, float32; feature-major in memory."""

    power_caps: npt.NDArray[np.float32]  # [B,L,6]
    context: npt.NDArray[np.float32]  # [B,8] CONTEXT_FEATURES


def encode_how_fast(
    power_caps: CapColumns, running: WorkloadColumns, weights: Weights, mean_memory: Floats
) -> PowerCapObservation:
    """Encode B decisions over L power caps of a node each; every value of the result is finite.

    The context is that of the `where` head. Its workload, [B] or numbers, is all work on the node,
    with the longest expected runtime. Its candidates are the power caps. `mean_memory`, [B], is the
    mean of the nodes, in bytes.
    """
    batch, count = power_caps.power_cap.shape
    values = np.empty((batch, _RELATIVE, count))
    values[:, 0] = power_caps.power_w
    values[:, 1] = (power_caps.power_w + power_caps.kept_awake_w) / power_caps.speed
    make_relative(values)
    features = np.empty((batch, len(POWER_CAP_FEATURES), count), dtype=np.float32)
    features[:, :_RELATIVE] = values
    features[:, 2], features[:, 3] = power_caps.power_cap, power_caps.speed
    features[:, 4], features[:, 5] = power_caps.keeps_deadlines, power_caps.dirtiness
    shared = context_columns(running, weights, True, mean_memory, count)
    context = np.empty((batch, len(CONTEXT_FEATURES)), dtype=np.float32)
    context[:, 0], context[:, 1], context[:, 2], context[:, 3] = shared[:4]
    context[:, 4], context[:, 5], context[:, 6], context[:, 7] = shared[4:]
    return PowerCapObservation(features.transpose((0, 2, 1)), context)
