"""What is seen of a run's candidate starts: forecast, room in the plan, and the best zone of each.

The plan is of the cores, GPUs and memory used in each zone. All times are in seconds from the begin
of the plan and of the grid.
"""

from typing import NamedTuple, Protocol

import numpy as np

from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slots import FULL, GPU_SHARE, SlotColumns, with_overload
from greensched_policies.encoding.weights import Weights
from greensched_policies.kernel.forecast_window import fill_gaps, watch_run
from greensched_policies.kernel.later_room import LaterRoom, later_share
from greensched_policies.kernel.plan import Plan, slots_of
from greensched_policies.kernel.weighing import cost_per_s, mean_of_finite, weigh
from greensched_policies.library.functions import MOST_STARTS
from greensched_policies.library.grid_table import GridTable

NO_TRANSFER = np.zeros((2, 0))  # of data to any zone
_NOTHING = (np.inf, -np.inf)  # the least and the greatest of no values
_LEAST_CAPACITY = 1e-9  # a zone that lost its capacity counts as full, without dividing by zero
_ROUNDING = 1e-9  # of merit steps: sums of cores differ by the order in which they were added
# What is seen of each zone and start, in the order of SlotColumns: carbon at the start and over the
# run, price at the start and over the run, their weighted sum over the run, and the load. Then, not
# shown to rules: the joules on the nodes that come next, relative to those on the zone's mean node.
SHOWN, _WEIGHTED, _BUSIEST, _MERIT = 6, 4, 5, 6
SEEN = SHOWN + 1
SLOT_COLUMNS = len(SlotColumns._fields)

_with_overload = compiled(with_overload, inlined)


class HasNeeds(Protocol):
    """What has the fields of `PendingWork`, and may have more."""

    @property
    def now_s(self) -> float:
        """Return the first candidate start."""

    @property
    def runtime_s(self) -> Floats:
        """Return the expected runtime in each zone, [Z]."""

    @property
    def cpu_cores(self) -> float:
        """Return the requested cores."""

    @property
    def gpus(self) -> float:
        """Return the requested GPUs."""

    @property
    def memory_bytes(self) -> float:
        """Return the requested memory."""

    @property
    def later(self) -> LaterRoom:
        """Return what later starts may take."""

    @property
    def run_j(self) -> Floats:
        """Return the joules of the run in each zone, [Z]; [0]: not known."""


class PendingWork(NamedTuple):
    """A workload, or the rest of one, that may start now or later."""

    now_s: float
    runtime_s: Floats  # [Z] expected in each zone, infinite where no node can take it
    cpu_cores: float
    gpus: float
    memory_bytes: float
    later: LaterRoom
    run_j: Floats  # [Z] joules of such a run; [0]: not known


@fast
def as_slots(columns: Floats) -> SlotColumns:
    """Return a table whose rows are the fields of SlotColumns, [9,…], as a rule takes it."""
    return SlotColumns(
        columns[0], columns[1], columns[2], columns[3], columns[4],
        columns[5], columns[6], columns[7], columns[8],
    )  # fmt: skip


@borrowing
def watch(
    grid: GridTable,
    plan: Plan,
    slot_s: float,
    work: HasNeeds,
    surcharge: Floats,
    seen: Floats,
    room: Floats,
) -> bool:
    """Fill in `seen`, [7,Z,S], except the weighted sum; return whether data is missing.

    `surcharge`, [2,Z], is what a data transfer to each zone adds: a factor of carbon over the run,
    and a price; [2,0]: nothing.
    """
    now_s, has_gaps = work.now_s, False
    for zone in range(work.runtime_s.size):
        runtime_s = work.runtime_s[zone]
        if np.isinf(runtime_s):
            seen[:, zone], seen[_BUSIEST, zone], seen[_MERIT, zone] = np.nan, 0.0, 1.0
            has_gaps = True
            continue
        has_gaps |= watch_run(grid, zone, slot_s, now_s, runtime_s, seen)
        if surcharge.shape[1] > 0:
            for place in range(seen.shape[2]):
                seen[1, zone, place] *= surcharge[0, zone]
                seen[3, zone, place] += surcharge[1, zone]
        watch_room(plan, slot_s, work, zone, room, seen[_BUSIEST, zone])
        watch_merit(plan, slot_s, work, zone, seen[_MERIT, zone])
    return has_gaps


@borrowing
def watch_room(
    plan: Plan, slot_s: float, work: HasNeeds, zone: int, room: Floats, busiest: Floats
) -> None:
    """Fill in the zone's busiest share over the run from each start, [S], the run included.

    It is the largest of the shares of cores, memory and GPUs. Those of cores and memory are divided
    by `later_share` for all starts but the first.
    """
    for place in range(busiest.size):
        busiest[place] = 0.0
    end_s = work.now_s + work.runtime_s[zone]
    touched = slots_of(work.now_s, end_s, slot_s, plan.cores.shape[1])
    cores, capacity = plan.cores[zone], plan.capacity[zone]
    own_share = work.cpu_cores / max(capacity, _LEAST_CAPACITY)
    watch_plan(cores, capacity, touched, work.cpu_cores, room, 1.0, busiest)
    if work.memory_bytes > 0.0 and plan.memory.shape[1] > 0:
        memory, capacity = plan.memory[zone], plan.memory_capacity[zone]
        own_share = max(own_share, work.memory_bytes / max(capacity, _LEAST_CAPACITY))
        watch_plan(memory, capacity, touched, work.memory_bytes, room, 1.0, busiest)
    if not np.isnan(work.later.spare_s):
        for place in range(1, busiest.size):
            busiest[place] /= later_share(work.later, work.now_s + place * slot_s, own_share)
    if work.gpus > 0.0 and plan.gpus.shape[1] > 0:
        # GPUs are whole: there is room until the last one is requested.
        gpus, capacity = plan.gpus[zone], plan.gpu_capacity[zone]
        watch_plan(gpus, capacity, touched, work.gpus, room, GPU_SHARE, busiest)


@borrowing
def watch_merit(plan: Plan, slot_s: float, work: HasNeeds, zone: int, relative_j: Floats) -> None:
    """Fill in the joules of a run from each start on the nodes that come next, [S].

    They are relative to those on the zone's mean node. A run stays on its node, so what counts is
    how full the zone is when it starts.
    """
    if plan.merit.shape[1] == 0:
        relative_j[:] = 1.0
        return
    with_gpus = work.gpus > 0.0 and plan.gpus.shape[1] > 0
    steps = plan.merit[1 if with_gpus else 0, zone]
    if steps[0] == steps[steps.size - 1]:  # they rise: all are equal
        relative_j[:] = steps[0]
        return
    used = plan.gpus[zone] if with_gpus else plan.cores[zone]
    amount = work.gpus if with_gpus else work.cpu_cores
    capacity = plan.gpu_capacity[zone] if with_gpus else plan.capacity[zone]
    per_amount = steps.size / max(capacity, _LEAST_CAPACITY)
    first, _ = slots_of(work.now_s, work.now_s, slot_s, used.size)
    for place in range(relative_j.size):
        middle = used[min(first + place, used.size - 1)] + 0.5 * amount
        step = int(middle * per_amount + _ROUNDING)
        relative_j[place] = steps[min(max(step, 0), steps.size - 1)]


@borrowing
def fill_all_gaps(seen: Floats) -> None:
    """Replace missing data of `seen`, [7,Z,S], by the mean of what is known of that signal."""
    for signal in range(_WEIGHTED):
        fill_gaps(seen[signal])


@borrowing
def choose_zones(
    grid: GridTable,
    work: HasNeeds,
    slot_s: float,
    weights: Weights,
    seen: Floats,
    room: Floats,
    best: Integers,
) -> float:
    """Fill in the weighted sum in `seen`, and the best zone of each start, [S].

    Return what each second until the end of a run costs.
    """
    weigh(seen[1], seen[3], work.run_j, seen[_MERIT], weights, seen[_WEIGHTED])
    mean_s = mean_of_finite(work.runtime_s)
    each_s = cost_per_s(weights.performance, mean_s, slot_s, best.size)
    flat = seen.reshape((SEEN, seen[0].size))
    spread = _spread(flat[_WEIGHTED], flat[_BUSIEST])
    least = room[0]
    for place in range(best.size):
        best[place], least[place] = 0, np.inf
    for zone in range(work.runtime_s.size):
        if not np.isinf(work.runtime_s[zone]):
            weighted, busiest = seen[_WEIGHTED, zone], seen[_BUSIEST, zone]
            slow = each_s * work.runtime_s[zone]
            for place in range(min(best.size, starts_known(grid, zone, work.now_s, slot_s))):
                cost = _with_overload(weighted[place] + slow, busiest[place], spread)
                is_better = cost < least[place]
                best[place] = zone if is_better else best[place]
                least[place] = cost if is_better else least[place]
    return each_s


@inlined
def starts_known(grid: GridTable, zone: int, now_s: float, slot_s: float) -> int:
    """Return how many starts from now on lie within the forecast of a zone; at least one, now."""
    left = (grid.known_until_s[zone] - now_s) / slot_s
    return max(int(np.ceil(min(left, float(MOST_STARTS)))), 1)


@borrowing
def take_best(
    runtime_s: Floats,
    slot_s: float,
    each_s: float,
    seen: Floats,
    best: Integers,
    columns: Floats,
) -> None:
    """Fill in the fields of SlotColumns, [9,1,S], from the best zones.

    `each_s` is what each second until the end of a run costs.
    """
    waits_s, runtimes_s, ends = columns[0, 0], columns[1, 0], columns[SLOT_COLUMNS - 1, 0]
    for place in range(best.size):
        waits_s[place], runtimes_s[place] = place * slot_s, runtime_s[np.uintp(best[place])]
        ends[place] = each_s * (waits_s[place] + runtimes_s[place])
    for kind in range(SHOWN):
        column, of_zones = columns[2 + kind, 0], seen[kind]
        for place in range(best.size):
            column[place] = of_zones[np.uintp(best[place]), np.uintp(place)]


@borrowing
def take_merit(seen: Floats, best: Integers, merit: Floats) -> None:
    """Fill in the joules on the nodes that come next in the best zones, relative to means, [S]."""
    for place in range(best.size):
        merit[place] = seen[_MERIT, np.uintp(best[place]), np.uintp(place)]


@fast
def watch_slots(
    grid: GridTable,
    plan: Plan,
    slot_s: float,
    work: HasNeeds,
    surcharge: Floats,
    columns: Floats,
) -> bool:
    """Fill in forecast and load of the next slots, a row for each zone, in `columns`, [9,Z,S].

    Carbon, price and load "over the run" are those over the slot. In place of the last field are
    the joules in the slot on the nodes that come next, relative to the zone's mean node. Return
    whether data is missing.
    """
    count = columns.shape[2]
    in_slot_s = np.where(np.isinf(work.runtime_s), np.inf, slot_s)
    room = np.empty((2, count + most_slots(in_slot_s, slot_s)))
    in_slot = PendingWork(
        work.now_s, in_slot_s, work.cpu_cores, work.gpus, work.memory_bytes, work.later, work.run_j
    )
    return watch(grid, plan, slot_s, in_slot, surcharge, columns[2:], room)


@fast
def complete_slots(
    work: HasNeeds, slot_s: float, weights: Weights, has_gaps: bool, columns: Floats
) -> None:
    """Fill in all other fields of SlotColumns, [9,Z,S], and means where data is missing.

    The time until the end is that until the slot's end: slow nodes need more slots.
    """
    zones, count = columns.shape[1], columns.shape[2]
    if has_gaps:
        fill_all_gaps(columns[2:])
    runtime_s, seen = work.runtime_s, columns[2:]
    watts = work.run_j / runtime_s[: work.run_j.size]
    weigh(seen[1], seen[3], watts, seen[_MERIT], weights, seen[_WEIGHTED])
    each_s = cost_per_s(weights.performance, slot_s, slot_s, count)
    for zone in range(zones):
        columns[1, zone] = runtime_s[zone]
        for place in range(count):
            columns[0, zone, place] = place * slot_s
            columns[SLOT_COLUMNS - 1, zone, place] = each_s * (place + 1.0) * slot_s


@inlined
def most_slots(runtime_s: Floats, slot_s: float) -> int:
    """Return the most slots that a run in any zone touches."""
    longest_s = 0.0
    for zone in range(runtime_s.size):
        if not np.isinf(runtime_s[zone]):
            longest_s = max(longest_s, runtime_s[zone])
    return int(longest_s / slot_s) + 2


@borrowing
def watch_plan(
    planned: Floats,
    capacity: float,
    touched: tuple[int, int],
    amount: float,
    room: Floats,
    factor: float,
    busiest: Floats,
) -> None:
    """Raise the zone's busiest share over a run from each start, [S], to this one.

    `planned`, [S], are the zone's cores, GPUs or memory, and `amount` those of the run. The share
    is multiplied by `factor`.

    `touched` are the slots of a run that begins now, from `slots_of`. `room`, at least
    [2, S + slots of the run], is working memory for the maxima over 1, 2, 4, 8 … slots from each
    slot on; two of them cover any run.
    """
    capacity = max(capacity, _LEAST_CAPACITY)
    first, end = touched
    width = end - first
    count = busiest.size + width - 1
    most, into = planned[first:], 0
    if most.size < count:
        most, into = room[0], 1
        for at in range(count):
            most[at] = planned[min(first + at, planned.size - 1)]
    span = 1
    while 2 * span <= width:
        shorter, later, most = most, most[span:], room[into]
        for at in range(count + 1 - 2 * span):
            most[at] = max(shorter[at], later[at])
        into = 1 - into
        span *= 2
    later = most[width - span :]
    for place in range(busiest.size):
        share = factor * ((max(most[place], later[place]) + amount) / capacity)
        busiest[place] = max(busiest[place], share)


@inlined
def _spread(weighted: Floats, busiest: Floats) -> float:
    """Return the range of the weighted costs; 0 if no start exceeds the capacity."""
    is_over = False
    for place in range(busiest.size):
        is_over |= busiest[place] > FULL
    if not is_over:
        return 0.0
    # Four at a time: comparisons that do not wait for each other run in parallel.
    ones, twos, threes, fours = _NOTHING, _NOTHING, _NOTHING, _NOTHING
    whole = weighted.size - weighted.size % 4
    for place in range(0, whole, 4):
        ones = _widened(ones, weighted[place])
        twos = _widened(twos, weighted[place + 1])
        threes = _widened(threes, weighted[place + 2])
        fours = _widened(fours, weighted[place + 3])
    for place in range(whole, weighted.size):
        ones = _widened(ones, weighted[place])
    least = min(min(ones[0], twos[0]), min(threes[0], fours[0]))
    return max(max(ones[1], twos[1]), max(threes[1], fours[1])) - least


@inlined
def _widened(between: tuple[float, float], value: float) -> tuple[float, float]:
    """Return the least and the greatest value, this one included."""
    return min(between[0], value), max(between[1], value)
