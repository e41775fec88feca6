"""The number of the cluster's cores that may run now, given the carbon intensity of its grids."""

import numpy as np

from greensched_policies.compiling.compiled import compiled, fast
from greensched_policies.costs.cost import CPU_CAPACITY, Floats
from greensched_policies.costs.provisioning import HORIZON_S, provisioned_share
from greensched_policies.kernel.grid_means import step_at
from greensched_policies.kernel.plan import Plan
from greensched_policies.library.grid_table import CARBON, GridTable
from greensched_simulator.engine.state.cluster import ClusterState

_provisioned_share = compiled(provisioned_share)


@fast
def spare_cores(now_s: float, cluster: ClusterState, grid: GridTable, plan: Plan) -> float:
    """Return how many more cores may run now; negative if too many run, infinity if none runs.

    The quotas of all zones are added up, since the `where` rule chooses the zone.
    """
    if cluster.pods.sum() == 0:
        return np.inf
    share = _provisioned_share(*_carbon_range(now_s, grid))[0]
    running = 0.0
    for node in range(cluster.pods.size):
        if cluster.pods[node] > 0:
            running += cluster.nodes[CPU_CAPACITY, node] - cluster.cpu_free[node]
    return float((share * plan.capacity).sum() - running)


@fast
def _carbon_range(now_s: float, grid: GridTable) -> tuple[Floats, Floats, Floats]:
    """Return the carbon intensity now, and its least and greatest forecast, each [1,Z].

    All three are 0 where data is missing or the forecast is constant.
    """
    zones = grid.starts.size - 1
    now, least, most = np.zeros((1, zones)), np.zeros((1, zones)), np.zeros((1, zones))
    for zone in range(zones):
        first, last = step_at(grid, zone, now_s), step_at(grid, zone, now_s + HORIZON_S)
        factor, offset = grid.factors[CARBON, first], grid.offsets[CARBON, first]
        low, high = np.inf, -np.inf
        for step in range(first, last + 1):
            value = grid.values[CARBON, step] * factor + offset
            if not np.isnan(value):
                low, high = min(low, value), max(high, value)
        at_once = grid.values[CARBON, first] * factor + offset
        if low < high and not np.isnan(at_once):
            now[0, zone], least[0, zone], most[0, zone] = at_once, low, high
    return now, least, most
