"""Failures of a scenario's nodes, drawn by its seed: the same for all policies."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_simulator.arrays.nodes import Outages
from greensched_simulator.arrays.seeds import stream
from greensched_simulator.scenario.cluster import Failures, NodeGroup

NO_OUTAGES = Outages(np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64))


def outages_of(groups: list[NodeGroup], seed: int, horizon_s: float) -> Outages:
    """Return all failures until the horizon, each with its repair, which may be later."""
    node, spans, owners = 0, [], []
    for group in groups:
        dice = stream(seed, f"nodes/{group.name}/failures")
        for _ in range(group.count):
            if group.failures is not None:
                spans.append(_spans(group.failures, dice, horizon_s))
                owners.append(np.full(spans[-1].shape[0], node))
            node += 1
    if not owners:
        return NO_OUTAGES
    own, every = np.concatenate(owners), np.concatenate(spans)
    at_s = every.T.ravel()
    is_back = np.repeat([0, 1], own.size)
    order = np.lexsort((is_back, at_s))
    return Outages(at_s[order], np.tile(own, 2)[order], is_back[order])


def _spans(failures: Failures, dice: np.random.Generator, horizon_s: float) -> Floats:
    """Return begin and end of one node's outages, [K,2]."""
    found: list[tuple[float, float]] = []
    now_s = 0.0
    while True:
        begin_s = now_s + dice.exponential(failures.every)
        if begin_s >= horizon_s:
            return np.array(found).reshape(-1, 2)
        now_s = begin_s + dice.exponential(failures.repair)
        found.append((begin_s, now_s))
