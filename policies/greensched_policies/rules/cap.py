"""Rules that choose a power cap for each node.

A rule sees `CapColumns`, the power caps of nodes [B,L], and returns their costs [B,L], lower is
better.
"""

import numpy as np

from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import Floats

LATE_J = 1e9  # more than the cost of any power cap that keeps deadlines
CLEAN = 1.0 + 1e-9  # a steady grid's mean may be off its value by the last digit


def full_speed(nodes: CapColumns) -> Floats:
    """Return a cost [B,L] that is least without a cap.

    Source: what clusters do today.
    """
    return 1.0 - nodes.power_cap


def cap_60(nodes: CapColumns) -> Floats:
    """Return a cost [B,L] that is least at 60 %, whatever runs and whatever its deadline.

    150 of 250 W on a V100 took 13.7 to 15 % less energy for about 7 % more time: McDonald et al.,
    "Great power, great responsibility", arXiv 2205.09646.

    Source: McDonald et al., arXiv 2205.09646.
    """
    return np.abs(nodes.power_cap - 0.6)


def cap_frugal(nodes: CapColumns) -> Floats:
    """Return the joules of a second's work at full speed, [B,L], raised where deadlines are missed.

    That is (watts above idle + those that keep the node awake) / speed, as Zeus minimises with its
    weight on energy alone (You, Chung and Chowdhury, NSDI 2023), but within the deadlines of
    running work. Jobs that wait for room wait longer. If no cap keeps the deadlines, none is set.

    Source: You et al. (Zeus), NSDI 2023, with deadlines.
    """
    joules = (nodes.power_w + nodes.kept_awake_w) / nodes.speed
    return joules + (1.0 - nodes.keeps_deadlines) * LATE_J * (2.0 - nodes.power_cap)


def cap_when_dirty(nodes: CapColumns) -> Floats:
    """Return a cost [B,L], least at full speed up to the day's mean intensity, else at a low cap.

    Above the mean it is least at the lowest cap that keeps deadlines. Ours: like suspending in
    dirty hours, for work that cannot be suspended. If no cap keeps the deadlines, none is set.

    Source: this project.
    """
    slowed = nodes.power_cap + 2.0 * (1.0 - nodes.keeps_deadlines) * (2.0 - nodes.power_cap)
    return np.where(nodes.dirtiness > CLEAN, slowed, 1.0 - nodes.power_cap)
