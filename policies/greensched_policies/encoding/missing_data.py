"""Fills in missing data of candidates, in the same way for serving and for training."""

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats


def mean_filled(values: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return [B,N] values with each NaN replaced by its decision's mean, and where NaNs were.

    So a candidate without data is neither preferred nor avoided. A decision without any data
    keeps its NaNs; `encode_where` then leaves the signal out.
    """
    missing = np.isnan(values)
    if not missing.any() or missing.all():
        return values, missing
    known = np.where(missing, 0.0, values)
    count = (~missing).sum(axis=1)
    mean = known.sum(axis=1) / np.maximum(count, 1)
    mean[count == 0] = np.nan
    return np.where(missing, mean[:, None], values), missing
