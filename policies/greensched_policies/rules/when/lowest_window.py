"""When rule: start so that the whole run is cleanest."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns


def lowest_window(slots: SlotColumns) -> Floats:
    """Return the mean carbon intensity over the expected run from each start, [B,S].

    Lowest-Window of Hanafy et al., GAIA, ASPLOS 2024; Wiesner et al., "Let's Wait Awhile",
    Middleware 2021, call it non-interruptible.
    """
    return slots.carbon_over_run.copy()
