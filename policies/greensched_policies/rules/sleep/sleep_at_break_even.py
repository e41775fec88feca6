"""Sleep rule: a node sleeps once it has idled away what waking it takes."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns


def sleep_at_break_even(nodes: SleepColumns) -> Floats:
    """Return the seconds, [B,N], after which idling has cost as much as waking will.

    wake_j / saved_w, infinity where sleep saves nothing. However long the pauses are, this takes at
    most twice the energy that knowing their length would: Irani, Shukla and Gupta, "Online
    strategies for dynamic power management in systems with multiple power-saving states", ACM TECS
    2(3), 2003. It is the t_wait of Gandhi, Gupta, Harchol-Balter and Kozuch's DELAYEDOFF
    (Performance Evaluation 67, 2010) without its routing, which is for `where` rules.
    """
    saves = nodes.saved_w > 0.0
    return np.where(saves, nodes.wake_j / np.where(saves, nodes.saved_w, 1.0), np.inf)
