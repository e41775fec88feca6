"""When rule: the cheapest run, money and carbon weighed, for which the plan keeps room."""

from greensched_policies.cost import Floats
from greensched_policies.slots import SlotColumns, with_overload


def planned_window(slots: SlotColumns) -> Floats:
    """Return the weighted relative cost of the run from each start plus that of overload, [B,S].

    Lowest-Window takes capacity for endless: all that may wait starts in the same clean hour, finds
    no room there and ends late. Here what was planned before is respected.
    """
    return with_overload(slots.weighted_over_run, slots.busiest_over_run)
