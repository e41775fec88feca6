"""The autoscaled node groups of a scenario."""

import numpy as np

from greensched_simulator.arrays.nodes import NO_AUTOSCALED, AutoscaledGroups, NodeArrays
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.scenario.cluster import NodeGroup

_DRAWS = 1024  # then they begin again


def autoscaled_of(groups: list[NodeGroup], nodes: NodeArrays, seed: int) -> AutoscaledGroups:
    """Return the groups that are autoscaled, with draws by the seed, the same for all policies."""
    scaled = [group for group in groups if group.autoscaling is not None]
    if not scaled:
        return NO_AUTOSCALED
    own = [scaled.index(group) if group in scaled else -1 for group in groups]
    return AutoscaledGroups(
        np.repeat(np.array(own, np.int64), [group.count for group in groups]),
        np.array([group.autoscaling.min for group in scaled if group.autoscaling], np.int64),
        nodes.wake_s.copy(),
        stream(seed, "nodes/autoscaling").random(_DRAWS),
    )
