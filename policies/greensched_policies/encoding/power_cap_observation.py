"""The arrays that a learned `how_fast` policy sees: one row of features per power cap of a node.

Watts are divided by the mean of the power caps, as inputs of `where` and `when` are by the mean of
their candidates. Part of the same ENCODING_VERSION.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.capping import CapColumns
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    DecisionToMake,
    fill_context,
    make_relative,
    work_columns,
)

POWER_CAP_FEATURES = (
    "power",  # watts above idle, relative to the mean power cap's
    "energy",  # of a second's work, with idle watts that end with it, relative
    "power_cap",  # 0..1, 1 without a cap
    "speed",  # of the slowest workload there, relative to no cap
    "keeps_deadlines",  # 1 if all running work is expected to end in time
    "dirtiness",  # carbon intensity now, relative to its forecast mean over the next day
    "dearness",  # price now, relative to its forecast mean over the next day, −4 to 4
    "spare_speed",  # speed beyond what the most urgent work there needs, −1 to 1
    "is_gpu",  # 1 for the cap of GPUs, 0 for that of CPUs
    "is_measured",  # 1 where a meter gives the node's watts
)
_RELATIVE = 2  # the number of relative features, which come first


class PowerCapObservation(NamedTuple):
    """The input of a learned `how_fast` policy, float32; feature-major in memory."""

    power_caps: npt.NDArray[np.float32]  # [B,L,10]
    context: npt.NDArray[np.float32]  # [B,15] CONTEXT_FEATURES


class CappedDomain(NamedTuple):
    """What is known of B domains of nodes besides their power caps: [B,1] each, or a number."""

    dearness: Any  # price now, relative to the coming day
    needed_speed: Any  # for the most urgent work; infinite where it is late, −1 without any
    is_gpu: Any  # 1 for GPUs, 0 for CPUs
    is_measured: Any  # 1 where a meter gives the node's watts, else 0


def encode_how_fast(
    power_caps: CapColumns, domain: CappedDomain, asked: DecisionToMake
) -> PowerCapObservation:
    """Encode B decisions over L power caps of a node each; every value of the result is finite.

    The context is that of the `where` head. Its workload is all work on the node, with the longest
    expected runtime. Its candidates are the power caps.
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
    needed = np.minimum(np.maximum(domain.needed_speed, 0.0), 2.0)
    features[:, 6] = domain.dearness
    features[:, 7] = np.minimum(np.maximum(power_caps.speed - needed, -1.0), 1.0)
    features[:, 8], features[:, 9] = domain.is_gpu, domain.is_measured
    context = np.empty((batch, len(CONTEXT_FEATURES)), dtype=np.float32)
    shared = work_columns(asked.workload, asked.weights, True, asked.mean_memory, count)
    fill_context(shared, asked.timing, asked.workload.runtime_s, context)
    return PowerCapObservation(features.transpose((0, 2, 1)), context)
