"""When rule, deliberately bad: nothing ever runs."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns


def reject_all(slots: SlotColumns) -> Floats:
    """Return infinity for each start, [B,S]: no energy, no carbon, no work."""
    return np.full_like(slots.wait_s, np.inf)
