"""Nodes that sleep while they are empty: when they fall asleep, and what waking them takes.

Nothing has to happen when a node falls asleep: whoever places work on it finds out how long it has
been empty. Where no node ever sleeps, the table has no columns.
"""

import numpy as np

from greensched_policies.catalogue import SLEEP_RULES
from greensched_policies.cost import Floats
from greensched_policies.courses import Integers
from greensched_policies.sleeping import SleepColumns
from greensched_simulator.compiled import fast, inlined
from greensched_simulator.policy import Policy
from greensched_simulator.world import World, idle_watts

# Rows of the table [6,N].
SAVED_W, WAKE_S, WAKE_J, STAYS_AWAKE_S, ASLEEP_FROM_S, AWAKE_FROM_S = range(6)


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


@inlined
def is_asleep(sleep: Floats, node: int, is_empty: float, now_s: float) -> bool:
    """Tell whether a node sleeps; at the instant when it falls asleep it does not yet."""
    return is_empty > 0.0 and now_s > sleep[ASLEEP_FROM_S, node]


@fast
def sleep_seen(sleep: Floats, is_empty: Floats, rows: Integers, now_s: float) -> Floats:
    """Return the fields of SleepColumns for some nodes as they are now, [3,K]."""
    if sleep.shape[1] == 0:
        return np.empty((3, 0))
    seen = np.empty((3, rows.size))
    for place in range(rows.size):
        node = rows[place]
        seen[0, place] = sleep[SAVED_W, node]
        if is_asleep(sleep, node, is_empty[node], now_s):
            seen[1, place], seen[2, place] = sleep[WAKE_S, node], sleep[WAKE_J, node]
        else:
            seen[1, place], seen[2, place] = max(sleep[AWAKE_FROM_S, node] - now_s, 0.0), 0.0
    return seen


@inlined
def wake(sleep: Floats, node: int, is_empty: float, now_s: float) -> float:
    """Let a node begin to wake if it sleeps, and return since when it slept; NaN: it is awake."""
    if sleep.shape[1] == 0 or not is_asleep(sleep, node, is_empty, now_s):
        return np.nan
    sleep[AWAKE_FROM_S, node] = now_s + sleep[WAKE_S, node]
    return float(sleep[ASLEEP_FROM_S, node])


@inlined
def awake_from_s(sleep: Floats, node: int, now_s: float) -> float:
    """Return when work that is placed now can run: at once, or when the node has woken."""
    return max(now_s, sleep[AWAKE_FROM_S, node]) if sleep.shape[1] > 0 else now_s


@inlined
def fall_empty(sleep: Floats, node: int, now_s: float) -> None:
    """Let a node's time awake run down from now on, since nothing is left on it."""
    if sleep.shape[1] > 0:
        sleep[ASLEEP_FROM_S, node] = now_s + sleep[STAYS_AWAKE_S, node]
