"""The arrays that a learned `when` policy sees: one row of features per candidate start.

Values are divided by the mean of a decision's candidates, as for `where`, so that a policy works on
grids that it was not trained on. Part of the same ENCODING_VERSION.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats, WorkloadColumns
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    context_columns,
    make_relative,
)
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import Weights

SLOT_FEATURES = (
    "wait",  # until the start, relative to the mean candidate's
    "runtime",  # expected in the candidate's zone, relative
    "carbon_at_start",  # relative
    "carbon_over_run",  # relative
    "price_at_start",  # relative to the mean of its magnitude
    "price_over_run",  # relative to the mean of its magnitude
    "weighted_over_run",  # money and carbon over the run, relative to the mean of its magnitude
    "busiest_over_run",  # highest share of the zone's cores that run or are planned; 1 is full
)
_RELATIVE = 7  # the number of relative features, which come first


class SlotObservation(NamedTuple):
    """The input of a learned `when` policy, float32; `slots` is feature-major in memory."""

    slots: npt.NDArray[np.float32]  # [B,S,8]
    context: npt.NDArray[np.float32]  # [B,8] CONTEXT_FEATURES


def encode_when(
    slots: SlotColumns, workload: WorkloadColumns, weights: Weights, mean_memory: Floats
) -> SlotObservation:
    """Encode B decisions over S candidate starts each; every value of the result is finite.

    The workload is [B], or numbers. The context is that of the `where` head, with the starts as
    candidates. `mean_memory`, [B], is the mean of the nodes, in bytes.
    """
    batch, count = slots.wait_s.shape
    values = np.empty((batch, _RELATIVE, count))
    values[:, 0], values[:, 1] = slots.wait_s, slots.runtime_s
    values[:, 2], values[:, 3] = slots.carbon_at_start, slots.carbon_over_run
    values[:, 4], values[:, 5] = slots.price_at_start, slots.price_over_run
    values[:, 6] = slots.weighted_over_run
    make_relative(values)
    features = np.empty((batch, len(SLOT_FEATURES), count), dtype=np.float32)
    features[:, :_RELATIVE] = values
    features[:, _RELATIVE] = slots.busiest_over_run
    shared = context_columns(workload, weights, True, mean_memory, count)
    context = np.empty((batch, len(CONTEXT_FEATURES)), dtype=np.float32)
    context[:, 0], context[:, 1], context[:, 2], context[:, 3] = shared[:4]
    context[:, 4], context[:, 5], context[:, 6], context[:, 7] = shared[4:]
    return SlotObservation(features.transpose((0, 2, 1)), context)
