"""The room of a zone that may be planned for a start later than now: decisions 20 and 21.

Imports no other file of the kernel.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import inlined
from greensched_policies.encoding.slots import FULL

# Shares of `FULL` for starts later than now; decision 21 has what others did. In a cluster that was
# idle, in one that was busy, for the largest pods there, and for starts that leave no spare time.
_IDLE_LATER, _BUSY_LATER, _LEAST_LATER, _LAST = 0.95, 0.65, 0.1, 0.3
# From which mean share of busy cores on a cluster is no longer idle, and from which it is busy.
_IDLE, _BUSY = 0.7, 0.85
_LOST_PER_NODE_SHARE = 2.0


class LaterRoom(NamedTuple):
    """What later starts of a workload may take."""

    latest_s: float  # the latest start
    spare_s: float  # the last part of the wait, kept for waiting for a node; NaN: no limits
    most: float  # the share of `FULL` for starts with more time than that, by `most_later`


ALL_ROOM = LaterRoom(np.inf, np.nan, 1.0)


@inlined
def most_later(node_share: float, busy_share: float) -> float:
    """Return the share of `FULL` that later starts with time to spare may take.

    Some runs take longer than estimated, and work that nobody knows yet needs room too: the more,
    the larger the mean `busy_share` of the cluster's cores was. A pod that requests a large
    `node_share` of the largest node finds no node in a busy cluster, whose nodes are each as full
    as their zone.
    """
    part = min(max((busy_share - _IDLE) / (_BUSY - _IDLE), 0.0), 1.0)
    for_largest = (1.0 - _LOST_PER_NODE_SHARE * node_share) / FULL
    for_busy = max(min(_BUSY_LATER, for_largest), _LEAST_LATER)
    return _IDLE_LATER + part * (for_busy - _IDLE_LATER)


@inlined
def later_share(later: LaterRoom, start_s: float, own_share: float) -> float:
    """Return the share of `FULL` that a zone may be planned to for a start later than now.

    A start that leaves less than the spare time may find no node in time: so the less it leaves,
    the emptier the zone has to be. `own_share` is the share of the zone that the work requests: an
    idle zone has room at any time.
    """
    if np.isnan(later.spare_s):
        return 1.0
    left_s = later.latest_s - start_s
    part = min(max(left_s / later.spare_s, 0.0), 1.0) if later.spare_s > 0.0 else 1.0
    least = min(_LAST, later.most)
    return min(least + (later.most - least) * part + own_share, _IDLE_LATER)
