"""Cap rule: the same cap always."""

import numpy as np

from greensched_policies.costs.capping import CapColumns
from greensched_policies.costs.cost import Floats

SHARE = 0.6


def cap_60(nodes: CapColumns) -> Floats:
    """Return a cost, [B,L], that is least at 60 %, whatever runs and whatever its deadline.

    150 of 250 W on a V100 took 13.7 to 15 % less energy for about 7 % more time: McDonald et al.,
    "Great power, great responsibility", arXiv 2205.09646.
    """
    return np.abs(nodes.level - SHARE)
