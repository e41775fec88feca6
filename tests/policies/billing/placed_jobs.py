"""A cluster of three nodes in two zones, and jobs that are placed on it, told in a line each."""

from typing import NamedTuple

import numpy as np

from greensched_policies.billing.timelines import BilledNodes, Placements, ZoneSeries
from greensched_policies.costs.cost import CostModel, curve_table

# A straight curve, and one that has risen to its full height at a tenth of the load.
WATTS = curve_table([[100.0 + 20.0 * k for k in range(11)], [50.0] + [120.0] * 10])
MODEL = CostModel(WATTS, 0.5, 0.8, False)
HOUR = 3600.0
# Zone 0: 400 then 200 g/kWh, 100 then −20 per MWh, changing after an hour. Zone 1: steady.
ZONES = (
    ZoneSeries(np.array([0.0, HOUR]), np.array([400.0, 200.0]), np.array([100.0, -20.0])),
    ZoneSeries(np.array([0.0]), np.array([50.0]), np.array([30.0])),
)
NODES = BilledNodes(
    cpu_capacity=np.array([10.0, 20.0, 20.0]),
    curve_class=np.array([0, 1, 0]),
    gpu_capacity=np.array([0.0, 2.0, 0.0]),
    gpu_idle_w=np.array([0.0, 50.0, 0.0]),
    gpu_peak_w=np.array([0.0, 400.0, 0.0]),
    pue=np.array([1.0, 1.2, 1.5]),
    zone=np.array([0, 1, 0]),
)


class Job(NamedTuple):
    node: int
    start_s: float
    end_s: float
    cpu_cores: float
    gpus: float = 0.0
    gpu_ratio: float = MODEL.gpu_ratio


def placed(jobs: list[Job]) -> Placements:
    columns = list(zip(*jobs, strict=True)) if jobs else [()] * 6
    node, *rest = columns
    return Placements(np.array(node, dtype=np.int64), *(np.array(c, dtype=float) for c in rest))
