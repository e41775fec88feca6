"""When rule: the most carbon saved for each hour that the workload takes to finish."""

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns


def carbon_time(slots: SlotColumns) -> Floats:
    """Return less the saving per second from now to the finish, [B,S]; now is 0.

    Carbon-Time of Hanafy et al., GAIA, ASPLOS 2024: the greatest (C(now) − C(start)) over
    (wait + runtime), C being the carbon of the whole run.
    """
    saved = (slots.carbon_over_run[:, :1] - slots.carbon_over_run) * slots.runtime_s
    return -saved / (slots.wait_s + slots.runtime_s)
