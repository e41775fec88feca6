"""Rule: the candidate that adds the fewest grams of CO2-equivalent."""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import CARBON


def least_carbon(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's relative carbon, [B,N]; all 1 where carbon is not known.

    Marginal energy times the zone's carbon intensity, as low-carbon Kubernetes schedulers do
    by region (James and Schien, "A Low Carbon Kubernetes Scheduler", ICT4S 2019), here by the
    joules that the workload adds as well.
    """
    return nodes[:, :, CARBON].copy()
