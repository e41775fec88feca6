"""What sleep does to each node of a world, and the table with which a run begins."""

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns
from greensched_policies.rules.catalogue import SLEEP_RULES
from greensched_simulator.policy import Policy
from greensched_simulator.world.world import World, idle_watts


def sleep_columns(world: World) -> SleepColumns:
    """Return what sleep would do to each node of a world, [1,N].

    Where all empty nodes sleep for nothing, that is to draw nothing.
    """
    nodes, idle_w = world.nodes, idle_watts(world)
    if world.empty_nodes_sleep:
        return SleepColumns(idle_w[None, :], *(np.zeros((1, idle_w.size)),) * 2)
    return SleepColumns(
        np.maximum(idle_w - nodes.sleep_w, 0.0)[None, :],
        nodes.wake_s[None, :],
        ((nodes.wake_w - nodes.sleep_w) * nodes.wake_s)[None, :],
    )


def sleep_table(world: World, policy: Policy) -> Floats:
    """Return the table as it is at the start: all nodes are empty and awake, their time runs."""
    columns = sleep_columns(world)
    stays_awake_s = SLEEP_RULES[policy.sleep](columns)[0]
    ever = np.isfinite(stays_awake_s)
    if world.empty_nodes_sleep or not ever.any():
        return np.empty((6, 0))
    told = [np.where(ever, each[0], 0.0) for each in columns]
    return np.stack([*told, stays_awake_s, stays_awake_s, np.zeros(ever.size)])
