"""When rule: the first start at which the grid is clean for what is to come."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns, wait_until_low


def clean_threshold(slots: SlotColumns) -> Floats:
    """Return the wait, [B,S], raised where carbon at the start is above its 30th percentile.

    The threshold of Souza et al., "Ecovisor", ASPLOS 2023: it decides the start, and of work that
    may be suspended all slots. GAIA's artifact takes the percentile over the day after arrival,
    here it is that of the candidate starts, so that one of them always is clean enough.
    """
    return wait_until_low(slots.wait_s, slots.carbon_at_start)
