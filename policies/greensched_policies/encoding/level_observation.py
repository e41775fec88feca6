"""The arrays that a learned `how fast` policy sees: one row of features per cap level of a node.

Watts are divided by the levels' own mean, as what `where` and `when` see is divided by that of
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

LEVEL_FEATURES = (
    "power",  # watts above idle, relative to the mean level's
    "energy",  # for a second's work, with idle watts that end with it, relative
    "level",  # 0..1, 1 without a cap
    "speed",  # of the slowest that runs there, relative to no cap
    "keeps_deadlines",  # 1 where all that runs there is expected to end in time
    "dirtiness",  # carbon intensity now, relative to its forecast mean over the next day
)
_RELATIVE = 2  # the first so many


class LevelObservation(NamedTuple):
    """What a learned `how fast` policy is called with, float32; feature-major in memory."""

    levels: npt.NDArray[np.float32]  # [B,L,6]
    context: npt.NDArray[np.float32]  # [B,8] CONTEXT_FEATURES


def encode_how_fast(
    levels: CapColumns, running: WorkloadColumns, weights: Weights, mean_memory: Floats
) -> LevelObservation:
    """Encode B decisions over L levels of a node each; every value of the result is finite.

    The context is that of the `where` head, of all that runs on the node as one workload, [B] or
    numbers, for as long as the longest of it is expected to; its candidates are the levels, and
    `mean_memory`, [B], is that of the nodes, in bytes.
    """
    batch, count = levels.level.shape
    values = np.empty((batch, _RELATIVE, count))
    values[:, 0] = levels.power_w
    values[:, 1] = (levels.power_w + levels.kept_awake_w) / levels.speed
    make_relative(values)
    features = np.empty((batch, len(LEVEL_FEATURES), count), dtype=np.float32)
    features[:, :_RELATIVE] = values
    features[:, 2], features[:, 3] = levels.level, levels.speed
    features[:, 4], features[:, 5] = levels.keeps_deadlines, levels.dirtiness
    shared = context_columns(running, weights, True, mean_memory, count)
    context = np.empty((batch, len(CONTEXT_FEATURES)), dtype=np.float32)
    context[:, 0], context[:, 1], context[:, 2], context[:, 3] = shared[:4]
    context[:, 4], context[:, 5], context[:, 6], context[:, 7] = shared[4:]
    return LevelObservation(features.transpose((0, 2, 1)), context)
