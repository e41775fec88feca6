"""When rule: the cheapest run, money and carbon weighed, for which the plan keeps room."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns, spread_of, with_overload


def planned_window(slots: SlotColumns) -> Floats:
    """Return the weighted relative cost of the run from each start plus that of overload, [B,S].

    Lowest-Window takes capacity for endless: all that may wait starts in the same clean hour, finds
    no room there and ends late. Here what was planned before is respected.
    """
    weighted = slots.weighted_over_run
    return with_overload(weighted, slots.busiest_over_run, spread_of(weighted))
