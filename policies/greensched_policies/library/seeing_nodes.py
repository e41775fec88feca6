"""What a `where` policy sees of the nodes offered, and what each would cost, by the library."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    NODE_FEATURES,
    Observation,
)
from greensched_policies.encoding.timing import Timing
from greensched_policies.encoding.weights import Weights
from greensched_policies.library.functions import NO_SUCH_ROW
from greensched_policies.library.loading import address_of, call
from greensched_policies.library.node_table import NodeTable

NO_PLANNED_ZONE = -1


class PodNeeds(NamedTuple):
    """What a pod requests, and how long it is expected to run."""

    cpu_cores: float
    memory_bytes: float
    gpus: float
    runtime_s: float  # on the reference core


class PodDecision(NamedTuple):
    """What a pod's placing rests on besides nodes and zones."""

    weights: Weights
    timing: Timing
    planned_zone: int = NO_PLANNED_ZONE  # the place of the zone in which its run was planned


class CostRatios(NamedTuple):
    """What a `CostModel` assumes of all nodes."""

    utilisation_ratio: float
    gpu_ratio: float
    empty_nodes_sleep: bool


class NodesSeen(NamedTuple):
    """What a policy is shown of N nodes, and their costs."""

    observation: Observation  # of one decision
    power_w: npt.NDArray[np.float32]  # [N] watts that the pod adds at the meter, PUE included
    runtime_s: npt.NDArray[np.float32]  # [N] expected there
    lack_carbon: bool  # whether the zone of some node has no data; the others' mean is used
    lack_price: bool


class NodesToSee:
    """A cluster's nodes, and where the library finds them in memory.

    It is for one thread: results pass through memory that all calls share.
    """

    def __init__(self, table: NodeTable, curve_watts: Floats) -> None:
        """Raise TypeError for an array that the library cannot read."""
        self._kept = table, curve_watts
        self._lacked = np.empty(2, np.int64)
        self._given = [
            table.zone.size, table.gpu_share.size, curve_watts.size, address_of(table.fixed),
            address_of(table.moving), address_of(table.zone, np.int32),
            address_of(table.gpu_share), address_of(curve_watts),
            address_of(self._lacked, np.int64),
        ]  # fmt: skip

    def see(
        self,
        rows: npt.NDArray[np.int64],
        needs: PodNeeds,
        signals: Floats,
        ratios: CostRatios,
        asked: PodDecision,
    ) -> NodesSeen:
        """Return what a policy sees of the nodes in `rows`, [N], when a pod needs one of them.

        `signals`, [4,Z], are the zones' mean carbon and price over the run, and over the coming
        day; NaN: no data. A zone without data counts as the mean of the candidates that have some,
        so it is neither preferred nor avoided. Raises IndexError for a row that there is not.
        """
        count, shared = rows.size, len(CONTEXT_FEATURES)
        shown = np.empty(shared + len(NODE_FEATURES) * count, np.float32)
        costs = np.empty((2, count), np.float32)
        own = [
            count, signals.shape[1], address_of(rows, np.int64), address_of(signals),
            address_of(shown, np.float32), address_of(costs, np.float32),
        ]  # fmt: skip
        call(
            "see_nodes",
            [*self._given, *own],
            [*needs, *asked.weights, *ratios, *asked.timing, asked.planned_zone],
        )
        lack_carbon, lack_price = self._lacked.tolist()
        if lack_carbon == NO_SUCH_ROW:
            raise IndexError(f"rows {rows.min()} to {rows.max()} of {self._given[0]} nodes")
        features = shown[shared:].reshape(1, len(NODE_FEATURES), count).transpose((0, 2, 1))
        observation = Observation(features, shown[:shared].reshape(1, shared))
        return NodesSeen(observation, costs[0], costs[1], lack_carbon > 0, lack_price > 0)
