"""What a learned `how_fast` policy sees of power caps, by the library."""

import numpy as np

from greensched_policies.costs.capping import CapColumns
from greensched_policies.encoding.observation import CONTEXT_FEATURES, DecisionToMake
from greensched_policies.encoding.power_cap_observation import (
    POWER_CAP_FEATURES,
    CappedDomain,
    PowerCapObservation,
)
from greensched_policies.library.functions import SEEING_CAPS
from greensched_policies.library.loading import address_of, call


def encode_how_fast(
    power_caps: CapColumns, domain: CappedDomain, asked: DecisionToMake
) -> PowerCapObservation:
    """Encode B decisions over L power caps of a node each; every value of the result is finite.

    The context is that of the `where` head. Its workload is all work on the node, with the longest
    expected runtime. Its candidates are the power caps.
    """
    batch, count = power_caps.power_cap.shape
    table = np.stack(power_caps, axis=1, dtype=np.float64)
    features = np.empty((batch, len(POWER_CAP_FEATURES), count), np.float32)
    context = np.empty((batch, len(CONTEXT_FEATURES)), np.float32)
    numbers = np.empty((batch, SEEING_CAPS))
    told = [*asked.workload, *asked.weights, asked.mean_memory, *asked.timing, *domain]
    for place, value in enumerate(told):
        numbers[:, place] = value
    arrays = [address_of(table), address_of(numbers)]
    arrays += [address_of(each, np.float32) for each in (features, context)]
    call("see_power_caps", [batch, count, *arrays], [])
    return PowerCapObservation(features.transpose((0, 2, 1)), context)
