"""When rule: start in the cleanest moment."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns


def lowest_slot(slots: SlotColumns) -> Floats:
    """Return the carbon intensity at each start, [B,S].

    Lowest-Slot of Hanafy et al., "Going Green for Less Green: Optimizing the Cost of Reducing Cloud
    Carbon Emissions" (GAIA), ASPLOS 2024. It knows nothing of how long the workload runs.
    """
    return slots.carbon_at_start.copy()
