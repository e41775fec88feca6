"""Chooses when each of many held workloads starts, as the simulator does, with limits.

The operator's image has no compiler, so `choose_start` repeats the simulator's in numpy; a test
compares both. The limits are added for people who wait: no start is delayed for a tiny saving, no
plan is changed for a tiny gain, and nothing waits for dirtier power unless a policy allows it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

import numpy as np

from greensched_core.units import JOULES_PER_KWH, KWH_PER_MWH
from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slots import FULL, SlotColumns
from greensched_policies.encoding.weights import NO_CARBON_LIMIT, UNLIMITED, CarbonLimit
from greensched_policies.planning.carbon_limit import beyond_limit, is_within
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.outlook import CARBON_OVER_RUN, PRICE_OVER_RUN, Outlook
from greensched_policies.planning.start_blocks import (
    BLOCK,
    Block,
    StartRequest,
    block_of,
    columns_of,
    starts_to_choose,
)

NO_ZONE = -1  # of a workload that no node can take


class StartReason(StrEnum):
    """Why a start was chosen."""

    NO_CHOICE = "no-choice"  # the latest start is now, or no later slot is forecast
    NOW_IS_BEST = "now-is-best"
    SAVES_TOO_LITTLE = "saves-too-little"  # a later start is better, but not worth the wait
    CARBON_LIMIT = "carbon-limit"  # a later start is better, but emits more than the policy allows
    PLANNED = "planned"
    KEPT = "kept"  # the earlier plan is kept; another start may be slightly better
    NO_ZONE = "no-zone"  # no node can take it; the scheduler reports why


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Differences that are too small to act upon, as shares of a cost's magnitude.

    They compare starts within a forecast: on a constant grid, clean or dirty, no work is held.
    """

    least_saving: float = 0.02  # a saving below the error of forecasts is not worth a wait
    least_change: float = 0.01  # each new forecast differs a little; plans should be stable


@dataclass(frozen=True, slots=True)
class Mean:
    """Forecast means of carbon and price over a run in a zone; None: no data."""

    zone: int
    runtime_s: float
    power_w: float  # that the run adds
    carbon_g_per_kwh: float | None
    price_per_mwh: float | None

    @property
    def energy_kwh(self) -> float:
        """Return the energy of the run."""
        return self.power_w * self.runtime_s / JOULES_PER_KWH

    @property
    def carbon_g(self) -> float | None:
        """Return the grams that the run emits."""
        carbon = self.carbon_g_per_kwh
        return None if carbon is None else carbon * self.energy_kwh

    @property
    def cost(self) -> float | None:
        """Return the cost of the run's energy."""
        price = self.price_per_mwh
        return None if price is None else price / KWH_PER_MWH * self.energy_kwh


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen start of a workload, the reason, and the counterfactual."""

    start_s: float
    run: Mean  # from the chosen start on, in the zone that is best then
    # The counterfactual: now, or at the first start with room, in the zone that is best then.
    run_now: Mean
    saving: float  # share of the weighted cost saved against the soonest start
    why: StartReason
    has_room: bool  # whether the plan keeps room at the chosen start
    expected_s: float  # when it should run, later than `start_s` if there is no room yet
    kept_zone: int  # where the plan keeps its cores, from `expected_s` on
    kept_until_s: float
    lacks_room: bool = False  # it starts now, because starts worth the wait have no room


@dataclass(frozen=True, slots=True)
class Running:
    """Work that already runs."""

    zone: int
    until_s: float  # expected end; overdue work counts for one more slot
    cpu_cores: float
    gpus: float = 0.0


def plan_all(
    outlook: Outlook,
    plan: CorePlan,
    requests: Sequence[StartRequest],
    now_s: float,
    *,
    thresholds: Thresholds | None = Thresholds(),
    running: Iterable[Running] = (),
) -> list[Chosen]:
    """Choose the start of each workload, least slack first, and keep its room in `plan`.

    The answers are in the order of the requests. Without thresholds they equal the simulator's.
    Raises ValueError when a workload's runtimes, cores or latest start are not valid numbers.
    """
    _check(requests, outlook.zones)
    for run in running:
        until_s = max(run.until_s, now_s + outlook.slot_s)
        plan.keep(run.zone, now_s, until_s, run.cpu_cores, run.gpus)
    counts = _counts(outlook, requests, now_s)
    # The sort is stable: of equal slack the first request comes first.
    order = sorted(range(len(requests)), key=lambda place: requests[place].latest_s)
    found: dict[int, Chosen] = {}
    for count, alike in _blocks(order, counts):
        block = block_of(outlook, plan, [requests[place] for place in alike], now_s, count)
        for row, place in enumerate(alike):
            found[place] = _decide(block, row, plan, now_s, thresholds)
            _keep(plan, found[place], requests[place])
    return [found[place] for place in range(len(requests))]


def _counts(outlook: Outlook, requests: Sequence[StartRequest], now_s: float) -> list[int]:
    if not requests:
        return []
    latest_s = np.array([each.latest_s for each in requests])
    runtime_s = np.stack([each.runtime_s for each in requests])
    counts: list[int] = starts_to_choose(outlook, now_s, runtime_s, latest_s).tolist()
    return counts


def _blocks(order: Sequence[int], counts: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield consecutive workloads with equally many starts, at most BLOCK at a time."""
    for count, places in groupby(order, key=counts.__getitem__):
        alike = list(places)
        for first in range(0, len(alike), BLOCK):
            yield count, alike[first : first + BLOCK]


def choose_start(
    outlook: Outlook,
    plan: CorePlan,
    request: StartRequest,
    now_s: float,
    *,
    thresholds: Thresholds | None = Thresholds(),
) -> Chosen:
    """Return the start that a workload's rule prefers; the plan is not changed.

    Starts are `now_s` and whole slots after it, up to the latest start and the end of the forecast.
    Raises ValueError as `plan_all` does.
    """
    _check([request], outlook.zones)
    (count,) = _counts(outlook, [request], now_s)
    return _decide(block_of(outlook, plan, [request], now_s, count), 0, plan, now_s, thresholds)


def _keep(plan: CorePlan, chosen: Chosen, request: StartRequest) -> None:
    if chosen.kept_zone != NO_ZONE:
        kept = (chosen.kept_zone, chosen.expected_s, chosen.kept_until_s)
        plan.keep(*kept, request.cpu_cores, request.gpus)


def _check(requests: Sequence[StartRequest], zones: int) -> None:
    for place, each in enumerate(requests):
        is_right = each.runtime_s.shape == (zones,) and bool((each.runtime_s > 0.0).all())
        if not is_right or math.isnan(each.latest_s) or not 0.0 <= each.cpu_cores < math.inf:
            raise ValueError(
                f"workload {place}: runtimes {each.runtime_s}, latest start {each.latest_s}, "
                f"{each.cpu_cores} cores; give {zones} runtimes above 0, and numbers"
            )


def _decide(
    block: Block, row: int, plan: CorePlan, now_s: float, thresholds: Thresholds | None
) -> Chosen:
    request, widths = block.requests[row], block.widths[row]
    if not any(widths):
        return _unplaceable(now_s)
    load = plan.busiest(now_s, widths, block.count, request.cpu_cores, request.gpus)
    slots, zones = columns_of(block, row, load)
    busiest, weighted = slots.busiest_over_run[0], slots.weighted_over_run[0]
    limit = request.limit if block.has_carbon[row] else UNLIMITED
    place, why, is_now_too_dirty = _within_limit(slots, zones, request, limit, now_s, thresholds)
    soonest = _soonest(busiest)
    saving, expected = _saved_share(weighted, soonest, place) if place else 0.0, place
    may_run_now = place and not is_now_too_dirty
    if may_run_now and thresholds is not None and not _is_worth_it(saving, thresholds):
        place, why, expected, saving = 0, StartReason.SAVES_TOO_LITTLE, soonest, 0.0
    lacks_room = not place and thresholds is not None and _lacks_room(busiest, weighted, thresholds)
    waits_s = slots.wait_s[0]
    zone, expected_s = int(zones[expected]), now_s + float(waits_s[expected])
    return Chosen(
        start_s=now_s + float(waits_s[place]),
        run=_mean(block, row, int(zones[place]), place),
        run_now=_mean(block, row, int(zones[soonest]), soonest),
        saving=saving,
        why=why,
        has_room=bool(busiest[place] <= FULL),
        expected_s=expected_s,
        kept_zone=zone,
        kept_until_s=expected_s + float(request.runtime_s[zone]),
        lacks_room=lacks_room,
    )


class _Best(NamedTuple):
    """The place of the best start."""

    place: int
    why: StartReason
    is_now_too_dirty: bool = False  # so it waits even if that saves nothing


def _within_limit(
    slots: SlotColumns,
    zones: Integers,
    request: StartRequest,
    limit: CarbonLimit,
    now_s: float,
    thresholds: Thresholds | None,
) -> _Best:
    """Return the best start by the request's rule among those that a limit allows."""
    waits_s, busiest = slots.wait_s[0], slots.busiest_over_run[0]
    if waits_s.size == 1:
        return _Best(0, StartReason.NO_CHOICE)
    cost = request.when(slots)[0]
    place, why = _best(waits_s, cost, busiest, request, now_s, thresholds)
    if limit.price_per_g == NO_CARBON_LIMIT:
        return _Best(place, why)
    run_kwh = request.power_w[zones] * slots.runtime_s[0] / JOULES_PER_KWH
    grams = slots.carbon_over_run[0] * run_kwh
    money = slots.price_over_run[0] * run_kwh / KWH_PER_MWH
    soonest = _soonest(busiest)
    runs = place or soonest  # work that starts now runs when there is room
    if is_within(grams[runs], money[soonest] - money[runs], grams[soonest], limit):
        return _Best(place, why)
    is_beyond = beyond_limit(grams, money, busiest <= FULL, limit)
    allowed = np.where(is_beyond, np.inf, cost)
    within, why = _best(waits_s, allowed, busiest, request, now_s, thresholds)
    if place and not within:
        why = StartReason.CARBON_LIMIT
    return _Best(within, why, bool(is_beyond[0]))


def _best(
    waits_s: Floats,
    cost: Floats,
    busiest: Floats,
    request: StartRequest,
    now_s: float,
    thresholds: Thresholds | None,
) -> tuple[int, StartReason]:
    """Return the place of the cheapest start, or of the earlier plan if that is about as good.

    The costs are the rule's, so another rule gives another plan.
    """
    best = int(cost.argmin())
    if not math.isfinite(cost[best]):
        return 0, StartReason.NO_CHOICE  # rejected, or a fault: left to the cluster's queue
    why = StartReason.PLANNED if best else StartReason.NOW_IS_BEST
    if thresholds is None or request.kept_start_s is None:
        return best, why
    kept = max(round((request.kept_start_s - now_s) / (waits_s[1] - waits_s[0])), 0)
    if kept == best or kept >= cost.size or busiest[kept] > FULL >= busiest[best]:
        return best, StartReason.KEPT if kept == best and best else why
    if not math.isfinite(cost[kept]):
        return best, why
    if cost[kept] - cost[best] > thresholds.least_change * abs(cost[kept]):
        return best, why
    return kept, StartReason.KEPT if kept else StartReason.NOW_IS_BEST


def _soonest(busiest: Floats) -> int:
    """Return the first start with room, at which a workload would start if it were released now.

    If no start has room, return now.
    """
    return 0 if busiest[0] <= FULL else int((busiest <= FULL).argmax())


def _saved_share(weighted: Floats, soonest: int, place: int) -> float:
    saved = float(weighted[soonest] - weighted[place])
    magnitude = abs(float(weighted[soonest]))
    return saved / magnitude if magnitude > 0.0 else 0.0


def _is_worth_it(saving: float, thresholds: Thresholds) -> bool:
    return saving > 0.0 and saving >= thresholds.least_saving


def _lacks_room(busiest: Floats, weighted: Floats, thresholds: Thresholds) -> bool:
    """Return whether some start would be worth the wait if the plan had room for it."""
    full = busiest > FULL
    if not full.any():
        return False
    soonest = _soonest(busiest)
    least = int(np.where(full, weighted, np.inf).argmin())
    return _is_worth_it(_saved_share(weighted, soonest, least), thresholds)


def _mean(block: Block, row: int, zone: int, place: int) -> Mean:
    request, raw = block.requests[row], block.raw[:, row, zone, place].tolist()
    carbon, price = raw[CARBON_OVER_RUN], raw[PRICE_OVER_RUN]
    return Mean(
        zone=zone,
        runtime_s=float(request.runtime_s[zone]),
        power_w=float(request.power_w[zone]),
        carbon_g_per_kwh=None if math.isnan(carbon) else carbon,
        price_per_mwh=None if math.isnan(price) else price,
    )


def _unplaceable(now_s: float) -> Chosen:
    nowhere = Mean(NO_ZONE, math.inf, 0.0, None, None)
    return Chosen(
        start_s=now_s,
        run=nowhere,
        run_now=nowhere,
        saving=0.0,
        why=StartReason.NO_ZONE,
        has_room=False,
        expected_s=now_s,
        kept_zone=NO_ZONE,
        kept_until_s=now_s,
    )
