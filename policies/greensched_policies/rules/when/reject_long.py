"""When rule, deliberately bad: only what is short runs."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns

LONG_S = 3600.0


def reject_long(slots: SlotColumns) -> Floats:
    """Return the wait of each start, [B,S]; infinity where the run, begun now, takes over 1 h."""
    return slots.wait_s + np.where(slots.runtime_s[:, :1] > LONG_S, np.inf, 0.0)
