"""The watts and seconds of sleep of a world's nodes, and the sleep table at a run's start."""

from collections.abc import Callable

import numpy as np

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns
from greensched_policies.rules.catalogue import SLEEP_RULES
from greensched_simulator.policy import Policy
from greensched_simulator.world.world import World, idle_watts


def sleep_columns(world: World) -> SleepColumns:
    """Return the watts saved asleep, the seconds and the joules to wake of each node, [1,N].

    If all empty nodes sleep for free, they save their idle watts and wake at once for nothing.
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
    """Return the sleep table at the start: all nodes are empty and awake, and their time runs.

    Autoscaled nodes do not sleep by a rule. Raises BadInput for a rule that keeps a node awake for
    a negative time.
    """
    columns = sleep_columns(world)
    awake_s = stays_awake_s(SLEEP_RULES[policy.sleep], columns)
    if world.autoscaled.group.size:
        awake_s = np.where(world.autoscaled.group >= 0, np.inf, awake_s)
    ever = np.isfinite(awake_s)
    if world.empty_nodes_sleep or not ever.any():
        return np.empty((6, 0))
    rows = [np.where(ever, each[0], 0.0) for each in columns]
    return np.stack([*rows, awake_s, awake_s, np.zeros(ever.size)])


def stays_awake_s(rule: Callable[[SleepColumns], Floats], nodes: SleepColumns) -> Floats:
    """Return the seconds for which a rule keeps each empty node awake, [N].

    Raises BadInput if any is negative or NaN.
    """
    seconds: Floats = rule(nodes)[0]
    wrong = np.flatnonzero(~(seconds >= 0.0))
    if wrong.size:
        raise BadInput(
            f"the sleep rule {rule.__name__} keeps node {wrong[0]} (counted from 0) awake for "
            f"{seconds[wrong[0]]:g} s: return 0 or more, and infinity for a node that never sleeps"
        )
    return seconds
