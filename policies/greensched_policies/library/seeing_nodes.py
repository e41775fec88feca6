"""What a `where` policy sees of the nodes offered, and what each would cost, by the library."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import CostModel, Floats
from greensched_policies.encoding.observation import (
    CONTEXT_FEATURES,
    NODE_FEATURES,
    Observation,
)
from greensched_policies.encoding.weights import Weights
from greensched_policies.library.loading import address_of, call
from greensched_policies.library.node_table import NodeTable


class PodNeeds(NamedTuple):
    """What a pod requests, and how long it is expected to run."""

    cpu_cores: float
    memory_bytes: float
    gpus: float
    runtime_s: float  # on the reference core


class NodesSeen(NamedTuple):
    """What a policy is shown of N nodes, and their costs."""

    observation: Observation  # of one decision
    power_w: npt.NDArray[np.float32]  # [N] watts that the pod adds at the meter, PUE included
    runtime_s: npt.NDArray[np.float32]  # [N] expected there
    lack_carbon: bool  # whether the zone of some node has no data; the others' mean is used
    lack_price: bool


def see_nodes(
    table: NodeTable,
    rows: npt.NDArray[np.int64],
    needs: PodNeeds,
    signals: tuple[Floats, Floats],
    model: CostModel,
    weights: Weights,
) -> NodesSeen:
    """Return what a policy sees of the nodes in `rows`, [N], when a pod needs one of them.

    `signals` are the zones' mean carbon and price over the run, [Z] each; NaN: no data. A zone
    without data counts as the mean of the candidates that have some, so it is neither preferred
    nor avoided. Raises IndexError for a row that the table does not have.
    """
    carbon, price = signals
    count, nodes = rows.size, table.zone.size
    if count and not 0 <= rows.min() <= rows.max() < nodes:
        raise IndexError(f"rows {rows.min()} to {rows.max()} of {nodes} nodes")
    features = np.empty((1, len(NODE_FEATURES), count), np.float32)
    context = np.empty((1, len(CONTEXT_FEATURES)), np.float32)
    costs, lacked = np.empty((2, count), np.float32), np.empty(2, np.int64)
    sizes = [nodes, table.gpu_share.size, count, carbon.size, model.curve_watts.size]
    given = [
        address_of(table.fixed), address_of(table.moving), address_of(table.zone, np.int32),
        address_of(table.gpu_share), address_of(rows, np.int64), address_of(carbon),
        address_of(price), address_of(model.curve_watts),
    ]  # fmt: skip
    results = [address_of(each, np.float32) for each in (features, context, costs)]
    call(
        "see_nodes",
        [*sizes, *given, *results, address_of(lacked, np.int64)],
        [*needs, *weights, model.utilisation_ratio, model.gpu_ratio, model.empty_nodes_sleep],
    )
    return NodesSeen(
        Observation(features.transpose((0, 2, 1)), context), costs[0], costs[1], *(lacked > 0)
    )
