"""Cap rule: the level of the least energy for the work, if all is done in time."""

from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import Floats

LATE_J = 1e9  # dearer than any level that is in time


def cap_frugal(nodes: CapColumns) -> Floats:
    """Return the joules of a second's work at full speed, [B,L], raised where something is late.

    (watts above idle + those that keep the node awake) / speed: what Zeus minimises with its weight
    on energy alone (You, Chung and Chowdhury, NSDI 2023), with the deadlines of what runs there as
    its limit; who waits for room waits longer. Where nothing can be in time any more, there is no
    cap.
    """
    joules = (nodes.power_w + nodes.kept_awake_w) / nodes.speed
    return joules + (1.0 - nodes.keeps_deadlines) * LATE_J * (2.0 - nodes.level)
