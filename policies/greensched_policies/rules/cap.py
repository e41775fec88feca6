"""Rules that choose a power cap for each node.

A rule sees `CapColumns`, the power caps of nodes [B,L], and returns their costs [B,L], lower is
better.
"""

import numpy as np

from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import Floats

LATE_J = 1e9  # dearer than any power cap that is in time
CLEAN = 1.0 + 1e-9  # a steady grid's mean may be off its value by the last digit


def full_speed(nodes: CapColumns) -> Floats:
    """Return a cost, [B,L], that is least without a cap. What clusters do today."""
    return 1.0 - nodes.power_cap


def cap_60(nodes: CapColumns) -> Floats:
    """Return a cost, [B,L], that is least at 60 %, whatever runs and whatever its deadline.

    150 of 250 W on a V100 took 13.7 to 15 % less energy for about 7 % more time: McDonald et al.,
    "Great power, great responsibility", arXiv 2205.09646.
    """
    return np.abs(nodes.power_cap - 0.6)


def cap_frugal(nodes: CapColumns) -> Floats:
    """Return the joules of a second's work at full speed, [B,L], raised where something is late.

    (watts above idle + those that keep the node awake) / speed: what Zeus minimises with its weight
    on energy alone (You, Chung and Chowdhury, NSDI 2023), with the deadlines of what runs there as
    its limit; who waits for room waits longer. Where nothing can be in time any more, there is no
    cap.
    """
    joules = (nodes.power_w + nodes.kept_awake_w) / nodes.speed
    return joules + (1.0 - nodes.keeps_deadlines) * LATE_J * (2.0 - nodes.power_cap)


def cap_when_dirty(nodes: CapColumns) -> Floats:
    """Return a cost, [B,L]: at most the day's mean intensity full speed, else the lowest in time.

    Ours: what suspending in dirty hours is to work that can stop, for work that cannot. Where
    nothing can be in time any more, there is no cap.
    """
    slowed = nodes.power_cap + 2.0 * (1.0 - nodes.keeps_deadlines) * (2.0 - nodes.power_cap)
    return np.where(nodes.dirtiness > CLEAN, slowed, 1.0 - nodes.power_cap)
