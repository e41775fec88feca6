"""When rule: the first start at which the price is low for what is to come."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns, wait_until_low


def price_threshold(slots: SlotColumns) -> Floats:
    """Return the wait, [B,S], raised where the price at the start is above its 30th percentile.

    As `clean_threshold`, Ecovisor's threshold without suspension, on the price.
    """
    return wait_until_low(slots.wait_s, slots.price_at_start)
