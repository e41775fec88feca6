"""Cap rule: no caps."""

from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import Floats


def full_speed(nodes: CapColumns) -> Floats:
    """Return a cost, [B,L], that is least without a cap. What clusters do today."""
    return 1.0 - nodes.level
