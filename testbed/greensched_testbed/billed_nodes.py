"""Converts nodes to the arrays that the accounting reads."""

from collections.abc import Sequence

import numpy as np

from greensched_core.state import Node
from greensched_policies.billing.timelines import BilledNodes


def billed_nodes(
    nodes: Sequence[Node],
    curves: Sequence[tuple[float, ...]],
    zones: Sequence[str],
    default_pue: float,
) -> BilledNodes:
    """Return the nodes' columns; each node's curve is one of `curves`.

    A node outside of `zones` has neither carbon nor price.
    """
    return BilledNodes(
        cpu_capacity=np.array([node.cpu_cores for node in nodes]),
        curve_class=np.array([curves.index(node.curve.watts) for node in nodes]),
        gpu_capacity=np.array([float(node.gpu_count) for node in nodes]),
        gpu_idle_w=np.array([node.gpu.idle_w if node.gpu else 0.0 for node in nodes]),
        gpu_peak_w=np.array([node.gpu.peak_w if node.gpu else 0.0 for node in nodes]),
        pue=np.array([node.pue or default_pue for node in nodes]),
        zone=np.array([zones.index(node.zone) if node.zone in zones else -1 for node in nodes]),
    )
