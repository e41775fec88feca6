"""Nodes that sleep while they are empty: when they fall asleep, and what waking them takes.

Nothing has to happen when a node falls asleep: whoever places work on it finds out how long it has
been empty. Where no node ever sleeps, the table has no columns.
"""

from typing import Any

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns
from greensched_simulator.compiling.compiled import inlined

# Rows of the table [6,N].
SAVED_W, WAKE_S, WAKE_J, STAYS_AWAKE_S, ASLEEP_FROM_S, AWAKE_FROM_S = range(6)


@inlined
def is_asleep(sleep: Floats, node: int, is_empty: bool, now_s: float) -> bool:
    """Tell whether a node sleeps; at the instant when it falls asleep it does not yet."""
    return is_empty and now_s > sleep[ASLEEP_FROM_S, node]


@inlined
def sleep_seen(sleep: Floats, node: int, is_empty: bool, now_s: float) -> SleepColumns:
    """Return what sleep does to a node as it is now, each column a number."""
    nothing: Any = 0.0
    awake_s, energy_j = max(sleep[AWAKE_FROM_S, node] - now_s, nothing), nothing
    if is_asleep(sleep, node, is_empty, now_s):
        awake_s, energy_j = sleep[WAKE_S, node], sleep[WAKE_J, node]
    return SleepColumns(sleep[SAVED_W, node], awake_s, energy_j)


@inlined
def wake(sleep: Floats, node: int, is_empty: bool, now_s: float) -> float:
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
        awake_s = max(now_s, sleep[AWAKE_FROM_S, node])  # what it was woken for may have failed
        sleep[ASLEEP_FROM_S, node] = awake_s + sleep[STAYS_AWAKE_S, node]
