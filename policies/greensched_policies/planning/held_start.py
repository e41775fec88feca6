"""When held work is released after its start was chosen, and how much is held.

Functions of numbers and arrays: the operator calls them, and the simulator's engine compiles them.
"""

import zlib

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slots import SUM_ROUNDING

_DAY_S = 86_400.0
WRITTEN_ANEW_S = 2.0  # a planned start that moves by less is not written: it has whole seconds


def jitter_s(name: str, most_s: float, slot_s: float) -> float:
    """Return the delay, in seconds, that spreads starts planned for the same moment.

    It is the same each time work of that name is planned, at most `most_s`, and less than half a
    slot.
    """
    return zlib.crc32(name.encode()) / 2**32 * min(most_s, slot_s / 2)


def node_share(cpu_cores: float, memory_bytes: float, node: tuple[float, float]) -> float:
    """Return the larger of a pod's shares of a node's cores and memory; 0: its size is unknown."""
    cores, memory = node
    return max(cpu_cores / cores if cores else 0.0, memory_bytes / memory if memory else 0.0)


def mean_busy_share(
    before: float, busy: float, since_s: float, last_s: float, now_s: float
) -> float:
    """Return the mean share of busy cores over about the last day.

    `before` is that mean at `last_s`, counted since `since_s`, and `busy` the share now.
    """
    if now_s <= last_s:
        return before
    weight = (now_s - last_s) / max(min(now_s - since_s, _DAY_S), now_s - last_s)
    return before + weight * (busy - before)


def release_s(chosen_s: float, kept_s: float, delay_s: float, now_s: float, slot_s: float) -> float:
    """Return when held work is released for a chosen start, all in seconds.

    A start planned before, `kept_s` (NaN: none), stays to the second if it lies in the same slot.
    Another one that is later than now gets the delay of `jitter_s`.
    """
    if 0.0 <= kept_s - chosen_s < slot_s:
        return kept_s
    return chosen_s + delay_s if chosen_s > now_s else chosen_s


def has_moved(before_s: float, start_s: float) -> bool:
    """Return whether a planned start, in seconds, differs from the written one; NaN: none is."""
    return not abs(start_s - before_s) < WRITTEN_ANEW_S


def by_worth(is_new: Integers, saving: Floats, latest_s: Floats) -> Integers:
    """Return the order in which work may be held while the share of held cores lasts, [N].

    First what was planned before, then what saves most, then what must start first.
    """
    order = np.argsort(latest_s, kind="mergesort")  # stable
    order = order[np.argsort(-saving[order], kind="mergesort")]
    return order[np.argsort(is_new[order], kind="mergesort")]


def within_share(
    order: Integers, cpu_cores: Floats, most_cores: Floats, starts_now: Integers, held_cores: float
) -> Integers:
    """Return 1 for work that may be held in addition to `held_cores`, and 0 for the rest, [N].

    `most_cores`, [N], are the cores that all held work may request by the policy of each. What
    starts now counts as held: its room in the plan was considered with that of the others.
    """
    may_be_held = np.zeros(order.size, np.int64)
    for place in order:
        cores = held_cores + cpu_cores[place]
        if fits_share(cores, most_cores[place]) or starts_now[place]:
            held_cores = cores
            may_be_held[place] = 1
    return may_be_held


def fits_share(held_cores: float, most_cores: float) -> bool:
    """Return whether held work requests no more than its share, but for the rounding of sums."""
    return held_cores <= most_cores * (1.0 + SUM_ROUNDING)
