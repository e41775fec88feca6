"""Calls of the compiled library: packs what it takes, and unpacks what it answers.

The library counts times in seconds from the begin of the outlook.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.costs.merit_order import MERIT_STEPS
from greensched_policies.costs.pausing import Slots
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import Weights
from greensched_policies.library.functions import (
    ASKED,
    CHOICE,
    CHOICE_SLOTS,
    FOUND,
    NO_RULE,
    WHEN_BY_NUMBER,
    Ask,
)
from greensched_policies.library.loading import address_of, call
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import Outlook
from greensched_policies.rules.catalogue import WHEN_RULES, WhenPolicy


class Rules(NamedTuple):
    """The `when` rules of N workloads, and the quiet spans of P policies."""

    places: Integers  # [N] of each in the library; NO_RULE or QUEUED
    policies: Sequence[WhenPolicy]  # [N] asked where the library has no rule
    quiet_s: Floats = np.zeros((2, 1, 0))  # [2,P,Q] begins and ends, infinite where one has less


_PLACES = {WHEN_RULES[name]: place for place, name in enumerate(WHEN_BY_NUMBER)}
_FIELDS = len(SlotColumns._fields)


def plan_starts(
    outlook: Outlook,
    plan: CorePlan,
    now_s: float,
    asked: Floats,
    by_zone: Floats,
    order: Integers,
    rules: Rules,
) -> Floats:
    """Return what the library finds for N workloads, [FOUND,N]; `plan` then keeps their room.

    `asked`, [ASKED,N], are their numbers, `by_zone`, [2,N,Z], runtimes and watts. They are decided
    in this order, [N].
    """
    zones, count = outlook.zones, rules.places.size
    assert asked.shape == (ASKED, count) and by_zone.shape == (2, count, zones)
    ordered, found = np.stack([order, rules.places[order]]), np.empty((FOUND, count))
    faults: list[Exception] = []
    ask = Ask(_asking(rules.policies, faults))
    integers, numbers, _kept = _basis(outlook, plan, now_s)
    asking = ctypes.cast(ask, ctypes.c_void_p).value or 0
    integers += [count, order.size, asking, address_of(asked), address_of(by_zone)]
    integers += [address_of(ordered, np.int64), address_of(found)]
    integers += [*rules.quiet_s.shape[1:], address_of(rules.quiet_s)]
    call("plan_starts", integers, numbers)
    if faults:
        raise faults[0]
    return found


def library_rules(policies: Sequence[WhenPolicy]) -> Rules:
    """Return when policies as the library takes them."""
    places = np.array([_PLACES.get(policy, NO_RULE) for policy in policies], np.int64)
    return Rules(places, policies)


def see_slots(
    outlook: Outlook,
    plan: CorePlan,
    now_s: float,
    by_zone: Floats,
    needs: tuple[float, float, float],
    weights: Weights,
    count: int,
) -> tuple[SlotColumns, Floats]:
    """Return what a when rule sees of the next slots; and carbon, price and merit, [3,Z,count].

    `by_zone`, [2,Z], are runtimes and watts, `needs` the cores, GPUs and memory of the workload.
    There is a row for each zone. Only the second has NaN where data is missing. Merit are the
    joules on the nodes that come next, relative to those on the zone's mean node.
    """
    assert by_zone.shape == (2, outlook.zones)
    columns, raw = np.empty((_FIELDS, outlook.zones, count)), np.empty((3, outlook.zones, count))
    integers, numbers, _kept = _basis(outlook, plan, now_s)
    integers += [count, *map(address_of, (by_zone, columns, raw))]
    call("see_slots", integers, [*numbers, *needs, *weights])
    return SlotColumns._make(columns), raw


def choose_slots(
    seen: tuple[Floats, SlotColumns, Floats, Integers],
    by_zone: Floats,
    numbers: Sequence[float],
    running_in: int,
) -> tuple[Slots, list[float]]:
    """Return the slots in which work runs, and what `library.functions` tells of the choice.

    `seen` are the cost of each slot, [Z,S], both results of `see_slots`, and how many slots count
    in each zone, [Z]; `by_zone`, [2,Z], are runtimes and watts.
    """
    cost, slots, raw, counts = seen
    zones, count = cost.shape
    columns = np.stack(slots)
    assert (columns.shape, raw.shape) == ((_FIELDS, zones, count), (3, zones, count))
    chosen, told = np.zeros(count, np.bool_), np.empty(CHOICE)
    integers = [zones, count, running_in, address_of(by_zone), address_of(counts, np.int64)]
    integers += [*map(address_of, (cost, columns, raw)), address_of(chosen, np.bool_)]
    call("choose_slots", [*integers, address_of(told)], numbers)
    return chosen[: int(told[CHOICE_SLOTS])], told.tolist()


def _basis(
    outlook: Outlook, plan: CorePlan, now_s: float
) -> tuple[list[int], list[float], tuple[Floats, ...]]:
    """Return what most functions begin with, and arrays that must live until the call is over."""
    if (plan.begin_s, plan.slot_s) != (outlook.begin_s, outlook.slot_s):
        raise ValueError("the plan and the outlook begin at different times, or differ in slots")
    grid = outlook.grid
    by_step = np.concatenate([[grid.times_s, grid.since_s], grid.values, grid.sums, grid.gaps_s])
    capacities = plan.capacity, plan.gpu_capacity, plan.memory_capacity
    by_zone = np.stack([grid.per_step, grid.known_until_s, *capacities])
    kept = plan.cores, plan.gpus, plan.memory
    assert plan.merit.shape == (2, outlook.zones, MERIT_STEPS)
    sizes = [outlook.zones, by_step.shape[1], *(each.shape[1] for each in kept)]
    addresses = map(address_of, (by_step, by_zone, *kept, plan.merit))
    integers = [*sizes, address_of(grid.starts, np.int64), *addresses]
    since_s = max(now_s - outlook.begin_s, 0.0)  # a clock that was set back: as at the begin
    return integers, [since_s, outlook.slot_s, plan.busy_share], (by_step, by_zone)


def _asking(
    policies: Sequence[WhenPolicy], faults: list[Exception]
) -> Callable[[int, int, int, int], None]:
    """Return what the library calls for a workload of a policy that it does not have.

    A policy that raises an exception answers with no number, and its exception is noted.
    """

    def ask(place: int, count: int, columns_at: int, cost_at: int) -> None:
        cost = _array_at(cost_at, (count,))
        cost[:] = np.nan
        try:
            slots = SlotColumns._make(_array_at(columns_at, (_FIELDS, 1, count)))
            cost[:] = policies[place](slots)[0]
        except Exception as fault:  # noqa: BLE001  # it is raised again outside the library
            faults.append(fault)

    return ask


def _array_at(address: int, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_double)), shape)
