"""Chooses when each of many held workloads starts.

`greensched_policies.kernel` decides, compiled; the simulator's engine has the same functions.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from greensched_core.units import KWH_PER_MWH
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.quiet_spans import QuietSpans
from greensched_policies.costs.run_energy import run_kwh
from greensched_policies.encoding.weights import UNLIMITED, CarbonLimit, Weights
from greensched_policies.library.functions import (
    ASKED,
    CARBON,
    CARBON_NOW,
    CPU_CORES,
    EXPECTED,
    HAS_ROOM,
    LACKS_ROOM,
    LATEST_S,
    MAY_MOVE,
    MERIT,
    MERIT_NOW,
    NEVER_QUIET,
    NO_ZONE_YET,
    PLACE,
    PRICE,
    PRICE_NOW,
    QUEUED,
    QUIET,
    SAVING,
    SEEKS_ROOM,
    SOONEST,
    STAYS,
    STAYS_FROM_S,
    STAYS_IN,
    WHY,
    ZONE,
    ZONE_EXPECTED,
    ZONE_NOW,
)
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.library_calls import Rules, library_rules, plan_starts
from greensched_policies.planning.outlook import Outlook
from greensched_policies.rules.catalogue import WhenPolicy

NEVER = QuietSpans()
NO_ZONE = -1  # of a workload that no node can take


class StartReason(StrEnum):
    """Why a start was chosen; in the order of the numbers in `library/functions.py`."""

    NO_CHOICE = "no-choice"  # the latest start is now, or no later slot is forecast
    NOW_IS_BEST = "now-is-best"
    SAVES_TOO_LITTLE = "saves-too-little"  # a later start is better, but not worth the wait
    CARBON_LIMIT = "carbon-limit"  # a later start is better, but emits more than the policy allows
    PLANNED = "planned"
    KEPT = "kept"  # the earlier plan is kept; another start may be slightly better
    NO_ZONE = "no-zone"  # no node can take it; the scheduler reports why
    NO_ROOM = "no-room"  # no later start is worth the wait, but there is no room before it
    NOT_BEFORE = "not-before"  # likewise, but no start before it is allowed


_REASONS = tuple(StartReason)


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Differences that are too small to act upon, as shares of a cost's magnitude.

    They compare starts within a forecast: on a constant grid, clean or dirty, no work is held.
    """

    least_saving: float = 0.02  # a saving below the error of forecasts is not worth a wait
    # A forecast's own error is some 10 %: a smaller gain is noise, and each change is an API write.
    least_change: float = 0.05


@dataclass(frozen=True, slots=True)
class Kept:
    """The room that a plan keeps for a run: in a zone, from when to when."""

    zone: int
    begin_s: float
    end_s: float
    seeks_room: bool = False  # it would run earlier if there were room
    may_move: bool = False  # another start is chosen if it is better


class StartRequest(NamedTuple):
    """One workload whose start is to be chosen."""

    runtime_s: Floats | Sequence[float]  # [Z] expected; infinite where no node can take it
    latest_s: float  # the latest start, in seconds since the epoch; infinity: no limit
    cpu_cores: float
    # [Z] that it adds to its node's power in each zone, with the site's PUE
    power_w: Floats | Sequence[float]
    weights: Weights
    when: WhenPolicy
    limit: CarbonLimit = UNLIMITED
    gpus: float = 0.0
    kept_start_s: float | None = None  # the start planned before
    # None: any saving is worth a wait, and any gain another start.
    thresholds: Thresholds | None = Thresholds()
    waits_for_room: bool = True  # whether it is held while the plan has no room for it
    memory_bytes: float = 0.0
    # The last part of the wait, kept for waiting for a node: a start in it needs an emptier zone.
    # None: all starts may take all room.
    spare_s: float | None = None
    node_share: float = 0.0  # the largest share of a node's cores or memory that a pod requests
    from_s: float = -math.inf  # it may not start before
    quiet: QuietSpans = NEVER  # nor in these; in seconds since the epoch
    # A run that begins at its start must end by then; infinity: no deadline.
    due_s: float = math.inf
    runtime_error: float = 0.0  # standard deviation of the logarithm of true over expected
    late_price: float = 0.0  # of a late run, as a multiple of what it costs at the soonest start


class Mean(NamedTuple):
    """Forecast means of carbon and price over a run in a zone; None: no data."""

    zone: int
    runtime_s: float
    power_w: float  # that the run adds on the zone's mean node
    carbon_g_per_kwh: float | None
    price_per_mwh: float | None
    merit: float = 1.0  # joules on the nodes that come next, relative to the zone's mean node

    @property
    def energy_kwh(self) -> float:
        """Return the energy of the run."""
        return run_kwh(self.power_w, self.runtime_s, self.merit)

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


class Chosen(NamedTuple):
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
    soonest_s: float | None = None  # when `run_now` starts, if the plan has no room for it now


@dataclass(frozen=True, slots=True)
class Running:
    """Work that already runs."""

    zone: int
    until_s: float  # expected end; overdue work counts for one more slot
    cpu_cores: float
    gpus: float = 0.0
    memory_bytes: float = 0.0


def plan_all(
    outlook: Outlook,
    plan: CorePlan,
    requests: Sequence[StartRequest],
    now_s: float,
    *,
    running: Iterable[Running] = (),
) -> list[Chosen]:
    """Choose the start of each workload, least slack first, and keep its room in `plan`.

    Starts are `now_s` and whole slots after it, up to the latest start and the end of the forecast.
    The answers are in the order of the requests; of equal slack the first request is decided first.
    Raises ValueError when a workload's runtimes, cores or latest start are not valid numbers.
    """
    for run in running:
        until_s = max(run.until_s, now_s + outlook.slot_s)
        plan.keep(run.zone, now_s, until_s, run.cpu_cores, run.gpus, run.memory_bytes)
    anew = plan_again(outlook, plan, requests, [None] * len(requests), now_s)
    return [each for each in anew if each is not None]


def plan_again(
    outlook: Outlook,
    plan: CorePlan,
    requests: Sequence[StartRequest],
    kept: Sequence[Kept | None],
    now_s: float,
) -> list[Chosen | None]:
    """Choose starts as `plan_all` does, but not of work whose earlier plan, `kept`, still has room.

    The answer for such work is None, and `plan` keeps its room again. Work that may move is chosen
    anew, but no other work takes the room of its earlier plan.
    """
    if not requests:
        return []
    asked = _asked(outlook, requests)
    for place, each in enumerate(kept):
        if each is not None:
            asked[STAYS_IN, place], asked[SEEKS_ROOM, place] = each.zone, each.seeks_room
            asked[STAYS_FROM_S, place] = each.begin_s - outlook.begin_s
            asked[MAY_MOVE, place] = each.may_move
    order = np.argsort(asked[LATEST_S], kind="stable")
    rules = library_rules([each.when for each in requests])
    rules = rules._replace(quiet_s=_quiet_rows(asked, requests, outlook.begin_s))
    found = plan_starts(outlook, plan, now_s, asked, _in_zones(requests), order, rules)
    rows = found.T.tolist()
    return [
        _chosen(row, request, now_s, outlook.slot_s)
        for row, request in zip(rows, requests, strict=True)
    ]


def keep_queued(
    outlook: Outlook, plan: CorePlan, requests: Sequence[StartRequest], now_s: float
) -> list[Kept | None]:
    """Keep room in `plan` for work that waits for a node, as soon as there is room for each.

    Those at the begin of the queue come first. Their rules and latest starts do not matter. None:
    no node can take it.
    """
    if not requests:
        return []
    asked = _asked(outlook, requests)
    asked[LATEST_S], order = np.inf, np.arange(len(requests))
    rules = Rules(np.full(len(requests), QUEUED), ())
    found = plan_starts(outlook, plan, now_s, asked, _in_zones(requests), order, rules)
    return [
        _kept(row, request, now_s, outlook.slot_s)
        for row, request in zip(found.T.tolist(), requests, strict=True)
    ]


def _kept(row: list[float], request: StartRequest, now_s: float, slot_s: float) -> Kept | None:
    if _REASONS[int(row[WHY])] is StartReason.NO_ZONE:
        return None
    zone, begin_s = int(row[ZONE_EXPECTED]), now_s + row[EXPECTED] * slot_s
    return Kept(zone, begin_s, begin_s + float(request.runtime_s[zone]))


def _asked(outlook: Outlook, requests: Sequence[StartRequest]) -> Floats:
    """Return the numbers of the workloads, [ASKED,N]; raise ValueError if any is not valid."""
    numbers = [_numbers(each, outlook.begin_s) for each in requests]
    asked: Floats = np.array(numbers).reshape(-1, ASKED).T.copy()
    _check(requests, asked, outlook.zones)
    return asked


def _in_zones(requests: Sequence[StartRequest]) -> Floats:
    """Return the runtimes and watts of the workloads in each zone, [2,N,Z]."""
    by_zone = [[each.runtime_s for each in requests], [each.power_w for each in requests]]
    return np.array(by_zone)


def _numbers(request: StartRequest, begin_s: float) -> tuple[float, ...]:
    """Return a workload's column of the numbers that the library takes."""
    weights, limit, kept_s = request.weights, request.limit, request.kept_start_s
    thresholds = request.thresholds
    saving, change = (math.nan, 0.0) if thresholds is None else (
        thresholds.least_saving, thresholds.least_change
    )  # fmt: skip
    return (
        request.latest_s - begin_s, request.cpu_cores, request.gpus, weights.carbon, weights.cost,
        weights.performance, limit.price_per_g, limit.at_arrival_g,
        math.nan if kept_s is None else kept_s - begin_s, saving, change,
        float(request.waits_for_room), request.memory_bytes, NO_ZONE_YET, 0.0, 0.0,
        math.nan if request.spare_s is None else request.spare_s, request.node_share, 0.0,
        request.from_s - begin_s, NEVER_QUIET, request.due_s - begin_s, request.runtime_error,
        request.late_price,
    )  # fmt: skip


def _quiet_rows(asked: Floats, requests: Sequence[StartRequest], begin_s: float) -> Floats:
    """Return the quiet spans of the workloads' policies, [2,P,Q]; `asked` then names their rows."""
    rows: dict[QuietSpans, int] = {}
    for place, each in enumerate(requests):
        if each.quiet.begins_s:
            asked[QUIET, place] = rows.setdefault(each.quiet, len(rows))
    most = max((len(each.begins_s) for each in rows), default=1)
    found = np.full((2, max(len(rows), 1), most), np.inf)
    for spans, row in rows.items():
        found[:, row, : len(spans.begins_s)] = np.array(spans) - begin_s
    return found


def _chosen(row: list[float], request: StartRequest, now_s: float, slot_s: float) -> Chosen | None:
    """Return what the library found for a workload; None if its earlier plan stays."""
    if row[WHY] == STAYS:
        return None
    why = _REASONS[int(row[WHY])]
    if why is StartReason.NO_ZONE:
        return _unplaceable(now_s)
    kept_zone, expected_s = int(row[ZONE_EXPECTED]), now_s + row[EXPECTED] * slot_s
    return Chosen(
        start_s=now_s + row[PLACE] * slot_s,
        run=_mean(request, int(row[ZONE]), row[CARBON], row[PRICE], row[MERIT]),
        run_now=_mean(request, int(row[ZONE_NOW]), row[CARBON_NOW], row[PRICE_NOW], row[MERIT_NOW]),
        saving=row[SAVING],
        why=why,
        has_room=bool(row[HAS_ROOM]),
        expected_s=expected_s,
        kept_zone=kept_zone,
        kept_until_s=expected_s + float(request.runtime_s[kept_zone]),
        lacks_room=bool(row[LACKS_ROOM]),
        soonest_s=now_s + row[SOONEST] * slot_s if row[SOONEST] else None,
    )


def _check(requests: Sequence[StartRequest], asked: Floats, zones: int) -> None:
    latest_s, cpu_cores = asked[LATEST_S], asked[CPU_CORES]
    are_right = ~np.isnan(latest_s) & (cpu_cores >= 0.0) & (cpu_cores < np.inf)
    for place, each in enumerate(requests):
        runtime_s = each.runtime_s
        if not are_right[place] or len(runtime_s) != zones or not min(runtime_s) > 0.0:
            raise ValueError(
                f"workload {place}: runtimes {runtime_s}, latest start {each.latest_s}, "
                f"{each.cpu_cores} cores; give {zones} runtimes above 0, and numbers"
            )


def _mean(request: StartRequest, zone: int, carbon: float, price: float, merit: float) -> Mean:
    return Mean(
        zone=zone,
        runtime_s=float(request.runtime_s[zone]),
        power_w=float(request.power_w[zone]),
        carbon_g_per_kwh=None if math.isnan(carbon) else carbon,
        price_per_mwh=None if math.isnan(price) else price,
        merit=merit,
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
