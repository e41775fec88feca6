"""What the next run on a zone's nodes takes: first come the nodes that do work with least energy.

It is the merit order of power markets, with nodes in place of power stations.
"""

import numpy as np

from greensched_policies.costs.cost import Floats

MERIT_STEPS = 32  # of equal size, from an empty zone to a full one
ALIKE = (1.0,) * MERIT_STEPS  # of a zone whose nodes are all alike
_DIGITS = 12  # so that steps across nodes that are alike do not differ by rounding


def merit_order(busy_w: Floats, sizes: Floats, speeds: Floats, cores: Floats) -> tuple[float, ...]:
    """Return the joules of a unit of work in each step of a zone, from the best nodes to the worst.

    They are relative to mean watts times mean runtime, as plans have them. Of each node, [N]:
    `busy_w` are its watts above idle under full load with the site's PUE, `sizes` its cores, or
    GPUs, which draw them, `speeds` relative to the reference node, and `cores` its cores.
    """
    own = sizes > 0.0
    busy_w, sizes, speeds, cores = busy_w[own], sizes[own], speeds[own], cores[own]
    mean_w, mean_s = float(busy_w.sum()), float((cores / speeds).sum())
    if not mean_w * mean_s > 0.0:
        return ALIKE
    order = np.argsort(busy_w / sizes / speeds, kind="stable")
    until = np.concatenate([[0.0], np.cumsum(sizes[order])])
    joules = np.concatenate([[0.0], np.cumsum((busy_w / speeds)[order])])
    bounds = np.linspace(0.0, until[-1], MERIT_STEPS + 1)
    whole_j = np.diff(np.interp(bounds, until, joules)) * MERIT_STEPS
    steps: Floats = whole_j / (mean_w * mean_s / float(cores.sum()))
    return tuple(steps.round(_DIGITS).tolist())
