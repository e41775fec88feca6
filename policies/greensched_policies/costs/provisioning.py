"""Carbon-aware provisioning: the share of a cluster that may run at a carbon intensity."""

import numpy as np

from greensched_policies.costs.cost import Floats

# The share that may always run: 20 of 100 executors in the authors' code.
LEAST_SHARE = 0.2
# Least and greatest carbon intensity are those of the next 48 hours' forecast, as in that code.
HORIZON_S = 172_800.0
_TURNS = 12  # of Halley's method, whose error is cubed by each
_LEAST_RATIO = 1e-6  # of least to most; where the least is 0 the ratio α would be infinite
_FLAT = 1e-9  # relative; a smaller range from least to most is no reason to wait


def provisioned_share(now: Floats, least: Floats, most: Floats) -> Floats:
    """Return the share of each grid's machines that may run, [B,Z], by its carbon intensities.

    CAP of Lechowicz et al., "Carbon- and Precedence-Aware Scheduling for Data Processing Clusters",
    arXiv 2502.09717. Of k machines beyond the least share, the i-th runs while the intensity is at
    most U · (1 − (1 − 1/α) · (1 + 1/(αk))^(i−1)). These are the thresholds of k-search, whose
    competitive ratio is α = 1 / (1 + W((L/U − 1) / e)). L and U are the least and greatest
    forecast, W is Lambert's. For many machines the i/k that run are, with x the intensity:

        share = α · ln((1 − x/U) / (1 − 1/α))

    All machines may run if the grid does not change, or has no carbon.
    """
    share = np.ones(now.shape)
    for row in range(now.shape[0]):
        for zone in range(now.shape[1]):
            low, high = least[row, zone], most[row, zone]
            if high - low > _FLAT * abs(high):
                x = min(max(now[row, zone], low), high)
                share[row, zone] = LEAST_SHARE + (1.0 - LEAST_SHARE) * _beyond_least(x, low, high)
    return share


def _beyond_least(now: float, least: float, most: float) -> float:
    alpha = 1.0 / (1.0 + _lambert_w((max(least / most, _LEAST_RATIO) - 1.0) / np.e))
    left = (1.0 - now / most) / (1.0 - 1.0 / alpha)
    return min(max(alpha * np.log(left), 0.0), 1.0) if left > 0.0 else 0.0


def _lambert_w(z: float) -> float:
    """Return w of w·e^w = z, the principal branch, for z from −1/e to 0."""
    w = -1.0 + np.sqrt(max(2.0 * (1.0 + np.e * z), 0.0))  # exact at −1/e
    for _ in range(_TURNS):
        grown = np.exp(w)
        off = w * grown - z
        slope = grown * (w + 1.0) - (w + 2.0) * off / (2.0 * w + 2.0) if w > -1.0 else 1.0
        w -= off / slope
    return float(w)
