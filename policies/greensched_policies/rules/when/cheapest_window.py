"""When rule: start so that the whole run costs the least, money and carbon weighed together."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns


def cheapest_window(slots: SlotColumns) -> Floats:
    """Return the weighted relative cost of the run from each start, [B,S]; the `when` prior."""
    return slots.weighted_over_run.copy()
