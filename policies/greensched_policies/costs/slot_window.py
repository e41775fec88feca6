"""Which of the coming slots count for work that may be suspended.

Functions of numbers and arrays: the operator calls them, and the simulator's engine compiles them.
"""

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.costs.pausing import ROUNDING

NOT_RUNNING = -1  # the zone of work that does not run
MOST_IN_SLOTS = 1000  # 1 to 2 ms each; the remaining work is planned without a pause


def slot_counts(
    runtime_s: Floats,
    slots_ahead: Integers,
    slack_s: float,
    slot_s: float,
    running_in: int,
    most: int,
) -> Integers:
    """Return how many slots from now on count in each zone, [Z]; all 0: there is no choice.

    `slack_s` is the time until the latest start, and `slots_ahead`, [Z], are forecast.
    """
    spare = int(np.floor(min(max(slack_s / slot_s + ROUNDING, 0.0), float(most))))
    needed = slots_needed(runtime_s, slot_s)
    if spare < 1 or (needed.max() < 2 and running_in == NOT_RUNNING):
        return np.zeros(needed.size, np.int64)
    counts: Integers = np.minimum(np.maximum(needed, 1) + spare, slots_ahead)
    return counts


def slots_needed(runtime_s: Floats, slot_s: float) -> Integers:
    """Return how many slots a run without a pause needs in each zone, [Z]; 0: no node can."""
    finite = np.where(np.isinf(runtime_s), 0.0, runtime_s)
    needed: Integers = np.ceil(finite / slot_s - ROUNDING).astype(np.int64)
    return needed


def first_slot(wait_s: float, slot_s: float, running_in: int) -> int:
    """Return the first slot in which work may run that may not before `wait_s` from now.

    Waiting work may start within a slot. Work that runs may also go on now.
    """
    if wait_s <= 0.0:
        return 0
    slots = wait_s / slot_s
    if running_in == NOT_RUNNING:
        return int(np.floor(slots))
    return int(np.ceil(slots - ROUNDING))
