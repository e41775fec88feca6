"""Rules that choose when a job starts.

A rule sees `SlotColumns`, candidate starts [B,S], and returns their costs [B,S], lower is better.
"""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.slots import SlotColumns, spread_of, wait_until_low, with_overload

LONG_S = 3600.0


def run_now(slots: SlotColumns) -> Floats:
    """Return the wait of each start, [B,S]: the first costs nothing.

    Source: what clusters do today.
    """
    return slots.wait_s.copy()


def lowest_slot(slots: SlotColumns) -> Floats:
    """Return the carbon intensity at each start, [B,S].

    Lowest-Slot of Hanafy et al., "Going Green for Less Green: Optimizing the Cost of Reducing Cloud
    Carbon Emissions" (GAIA), ASPLOS 2024. It ignores how long the workload runs.

    Source: Hanafy et al. (GAIA), ASPLOS 2024.
    """
    return slots.carbon_at_start.copy()


def lowest_window(slots: SlotColumns) -> Floats:
    """Return the mean carbon intensity over the expected run from each start, [B,S].

    Lowest-Window of Hanafy et al., GAIA, ASPLOS 2024; Wiesner et al., "Let's Wait Awhile",
    Middleware 2021, call it non-interruptible.

    Source: GAIA; Wiesner et al. (Let's Wait Awhile), Middleware 2021.
    """
    return slots.carbon_over_run.copy()


def cheapest_window(slots: SlotColumns) -> Floats:
    """Return the weighted relative cost of the run from each start, [B,S]: money, carbon and time.

    Source: this project's reward.
    """
    return slots.weighted_over_run + slots.completion


def planned_window(slots: SlotColumns) -> Floats:
    """Return the weighted relative cost of the run from each start plus that of overload, [B,S].

    Lowest-Window assumes unlimited capacity: all work that may wait starts in the same clean hour,
    finds no room there and ends late. This rule respects earlier plans.

    Source: this project.
    """
    weighted = slots.weighted_over_run + slots.completion
    return with_overload(weighted, slots.busiest_over_run, spread_of(weighted))


def carbon_time(slots: SlotColumns) -> Floats:
    """Return the negative saving of carbon per second from now to the finish, [B,S]; now is 0.

    Carbon-Time of Hanafy et al., GAIA, ASPLOS 2024: the greatest (C(now) − C(start)) over
    (wait + runtime), C being the carbon of the whole run.

    Source: GAIA.
    """
    saved = (slots.carbon_over_run[:, :1] - slots.carbon_over_run) * slots.runtime_s
    return -saved / (slots.wait_s + slots.runtime_s)


def clean_threshold(slots: SlotColumns) -> Floats:
    """Return the wait, [B,S], raised where carbon at the start is above its 30th percentile.

    The threshold of Souza et al., "Ecovisor", ASPLOS 2023: it decides the start, and every slot of
    work that may be suspended. GAIA's artifact takes the percentile over the day after arrival;
    this rule takes that of the candidate starts, so that one of them is always clean enough.

    Source: Souza et al. (Ecovisor), ASPLOS 2023.
    """
    return wait_until_low(slots.wait_s, slots.carbon_at_start)


def price_threshold(slots: SlotColumns) -> Floats:
    """Return the wait, [B,S], raised where the price at the start is above its 30th percentile.

    As `clean_threshold`: Ecovisor's threshold without suspension, applied to the price.

    Source: Ecovisor, by price.
    """
    return wait_until_low(slots.wait_s, slots.price_at_start)


def reject_all(slots: SlotColumns) -> Floats:
    """Return infinity for each start, [B,S]: no energy, no carbon, no work."""
    return np.full_like(slots.wait_s, np.inf)


def reject_long(slots: SlotColumns) -> Floats:
    """Return the wait of each start, [B,S]; infinity if a run from now takes over 1 h."""
    return slots.wait_s + np.where(slots.runtime_s[:, :1] > LONG_S, np.inf, 0.0)
