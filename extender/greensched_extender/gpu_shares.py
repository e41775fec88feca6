"""The share of their range from idle to peak that busy GPUs draw: measured, by kind of GPU.

How much a GPU draws depends on its work, not on its node. So the measured GPUs of a kind, on all
nodes, say what the next work on one of that kind will draw.
"""

import numpy as np

from greensched_policies.costs.cost import Floats

# GPUs at the assumed share that count beside the measured ones: otherwise one GPU that idles under
# a notebook would make its kind look frugal.
_ASSUMED_GPUS = 8.0


def measured_shares(
    watts: Floats, gpus: Floats, busy: Floats, idle_w: Floats, peak_w: Floats, assumed: float
) -> Floats:
    """Return the share of each node's kind of GPU, [N], 0..1; NaN if none of the kind is measured.

    `watts` are those of a node's GPUs, NaN where they are not measured, and `busy` the number of
    them that pods requested. A kind is GPUs of the same watts.
    """
    range_w = peak_w - idle_w
    _, kind = np.unique(idle_w + 1j * peak_w, return_inverse=True)
    is_measured = np.isfinite(watts) & (busy > 0.0) & (range_w > 0.0)
    drawn = (watts - gpus * idle_w)[is_measured] / range_w[is_measured]  # in GPUs at their peak
    drawn = np.minimum(np.maximum(drawn, 0.0), busy[is_measured])
    counted = np.bincount(kind[is_measured], busy[is_measured], kind.max(initial=-1) + 1)
    at_peak = np.bincount(kind[is_measured], drawn, counted.size)
    shares = (at_peak + _ASSUMED_GPUS * assumed) / (counted + _ASSUMED_GPUS)
    shares[counted == 0.0] = np.nan
    of_nodes: Floats = shares[kind]
    return of_nodes
