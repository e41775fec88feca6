"""Nodes that sleep while they are empty: when they fall asleep, and what waking them takes.

Nothing has to happen when a node falls asleep: whoever places work on it finds out how long it has
been empty. Where no node ever sleeps, the table has no columns.
"""

import numpy as np

from greensched_policies.cost import Floats, Integers
from greensched_simulator.compiled import fast, inlined

# Rows of the table [6,N].
SAVED_W, WAKE_S, WAKE_J, STAYS_AWAKE_S, ASLEEP_FROM_S, AWAKE_FROM_S = range(6)


@inlined
def is_asleep(sleep: Floats, node: int, is_empty: float, now_s: float) -> bool:
    """Tell whether a node sleeps; at the instant when it falls asleep it does not yet."""
    return is_empty > 0.0 and now_s > sleep[ASLEEP_FROM_S, node]


@fast
def sleep_seen(sleep: Floats, is_empty: Floats, rows: Integers, now_s: float) -> Floats:
    """Return the fields of SleepColumns for some nodes as they are now, [3,K] or no columns."""
    if sleep.shape[1] == 0:
        return sleep  # nothing is made
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
        awake_s = max(now_s, sleep[AWAKE_FROM_S, node])  # what it was woken for may have failed
        sleep[ASLEEP_FROM_S, node] = awake_s + sleep[STAYS_AWAKE_S, node]
