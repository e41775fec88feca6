"""Rules that choose how long an empty node stays awake.

A rule sees `SleepColumns`, nodes [B,N], and returns seconds [B,N]; infinity: it never sleeps.
"""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns

UNNEEDED_S = 600.0


def stay_awake(nodes: SleepColumns) -> Floats:
    """Return infinity for each node, [B,N].

    Source: clusters without an autoscaler.
    """
    return np.full(nodes.saved_w.shape, np.inf)


def sleep_at_once(nodes: SleepColumns) -> Floats:
    """Return 0 s for each node that saves watts asleep, [B,N], infinity for the others.

    Turning servers off when they fall idle ("INSTANTOFF") of Gandhi, Gupta, Harchol-Balter and
    Kozuch, "Optimality analysis of energy-performance trade-off for server farm management",
    Performance Evaluation 67, 2010: best where waking is cheap compared with the pauses.

    Source: Gandhi et al. (INSTANTOFF), Performance Evaluation 2010.
    """
    return np.where(nodes.saved_w > 0.0, 0.0, np.inf)


def sleep_after_10m(nodes: SleepColumns) -> Floats:
    """Return ten minutes for each node that saves watts asleep, [B,N], infinity for the others.

    What Kubernetes' Cluster Autoscaler does with nodes that it removes: its default for
    --scale-down-unneeded-time.

    Source: Kubernetes' Cluster Autoscaler, `--scale-down-unneeded-time`.
    """
    return np.where(nodes.saved_w > 0.0, UNNEEDED_S, np.inf)


def sleep_at_break_even(nodes: SleepColumns) -> Floats:
    """Return the seconds [B,N] after which idling has cost as much as waking will.

    That is wake_j / saved_w, infinity where sleep saves nothing. Whatever the pauses, this takes at
    most twice the energy of a rule that knows their lengths: Irani, Shukla and Gupta, "Online
    strategies for dynamic power management in systems with multiple power-saving states", ACM TECS
    2(3), 2003. It is the t_wait of Gandhi, Gupta, Harchol-Balter and Kozuch's DELAYEDOFF
    (Performance Evaluation 67, 2010) without its routing, which `where` rules do.

    Source: Irani, Shukla and Gupta, ACM TECS 2003; Gandhi et al. (DELAYEDOFF).
    """
    saves = nodes.saved_w > 0.0
    return np.where(saves, nodes.wake_j / np.where(saves, nodes.saved_w, 1.0), np.inf)
