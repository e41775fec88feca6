"""What a learned `when` policy sees of candidate starts, by the library."""

import numpy as np

from greensched_policies.encoding.observation import CONTEXT_FEATURES, DecisionToMake
from greensched_policies.encoding.slot_observation import (
    SLOT_FEATURES,
    ComingDay,
    SlotObservation,
)
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.library.loading import address_of, call


def encode_when(slots: SlotColumns, asked: DecisionToMake, day: ComingDay) -> SlotObservation:
    """Encode B decisions over S candidate starts each; every value of the result is finite.

    All are of one workload: what is asked are numbers.
    """
    batch, count = slots.wait_s.shape
    table = np.stack(slots, dtype=np.float64)
    features = np.empty((batch, len(SLOT_FEATURES), count), np.float32)
    context = np.empty((batch, len(CONTEXT_FEATURES)), np.float32)
    arrays = [address_of(table), *(address_of(each, np.float32) for each in (features, context))]
    numbers = [*asked.workload, *asked.weights, asked.mean_memory, *asked.timing, *day]
    call("see_starts", [batch, count, *arrays], numbers)
    return SlotObservation(features.transpose((0, 2, 1)), context)
