"""Nodes that sleep while they are empty: when they fall asleep, and what waking them takes.

Falling asleep is no event: placing work on a node checks how long it has been empty. The table has
no columns if no node ever sleeps.
"""

from typing import Any

import numpy as np

from greensched_policies.compiling.compiled import inlined
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.sleeping import SleepColumns

# Rows of the table [6,N].
SAVED_W, WAKE_S, WAKE_J, STAYS_AWAKE_S, ASLEEP_FROM_S, AWAKE_FROM_S = range(6)


@inlined
def is_asleep(sleep: Floats, node: int, is_empty: bool, now_s: float) -> bool:
    """Return whether a node sleeps; at the instant when it falls asleep it does not yet."""
    return is_empty and now_s > sleep[ASLEEP_FROM_S, node]


@inlined
def sleep_seen(sleep: Floats, node: int, is_empty: bool, now_s: float) -> SleepColumns:
    """Return the watts that a node saves asleep, and what waking it now takes, in numbers."""
    nothing: Any = 0.0
    awake_s, energy_j = max(sleep[AWAKE_FROM_S, node] - now_s, nothing), nothing
    if is_asleep(sleep, node, is_empty, now_s):
        awake_s, energy_j = sleep[WAKE_S, node], sleep[WAKE_J, node]
    return SleepColumns(sleep[SAVED_W, node], awake_s, energy_j)


@inlined
def wake(sleep: Floats, node: int, is_empty: bool, now_s: float) -> float:
    """Begin to wake a node that sleeps; return since when it slept, NaN if it is awake."""
    if sleep.shape[1] == 0 or not is_asleep(sleep, node, is_empty, now_s):
        return np.nan
    sleep[AWAKE_FROM_S, node] = now_s + sleep[WAKE_S, node]
    return float(sleep[ASLEEP_FROM_S, node])


@inlined
def awake_from_s(sleep: Floats, node: int, now_s: float) -> float:
    """Return when work placed now can run: at once, or when the node has woken."""
    return max(now_s, sleep[AWAKE_FROM_S, node]) if sleep.shape[1] > 0 else now_s


@inlined
def fall_empty(sleep: Floats, node: int, now_s: float) -> None:
    """Set when a node that has just become empty falls asleep."""
    if sleep.shape[1] > 0:
        awake_s = max(now_s, sleep[AWAKE_FROM_S, node])  # the job may have failed during waking
        sleep[ASLEEP_FROM_S, node] = awake_s + sleep[STAYS_AWAKE_S, node]
