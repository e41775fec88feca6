"""Chooses the slots of the forecast and the zone for a workload that may be suspended.

This repeats the simulator's `choose_runs` with the same compiled functions; a test compares both.
The thresholds of `planning` are added: no work is suspended for a tiny saving.
"""

import math
from dataclasses import dataclass

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.costs.pausing import PauseColumns, Slots, restarts
from greensched_policies.encoding.carbon_limit import is_within
from greensched_policies.encoding.slots import FULL, SlotColumns
from greensched_policies.encoding.weights import UNLIMITED, CarbonLimit, Weights
from greensched_policies.library.functions import MOST_STARTS
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.library_calls import planned_slots, see_slots
from greensched_policies.planning.outlook import CARBON, PRICE, Outlook
from greensched_policies.planning.planning import NO_ZONE, Chosen, Mean, StartReason, Thresholds
from greensched_policies.rules.catalogue import WhenPolicy
from greensched_policies.rules.pause import pause_if_worth

_ROUNDING = 1e-9  # of a slot
_MERIT = 2  # of what is seen, after CARBON and PRICE


@dataclass(frozen=True, slots=True, eq=False)
class Interruptible:
    """One workload that may be suspended, and its remaining work."""

    runtime_s: Floats  # [Z] expected, of remaining work; infinite where no node can take it
    latest_s: float  # when it must run at the latest, and then to its end without a pause
    cpu_cores: float
    power_w: Floats  # [Z] that it adds to its node's power in each zone, with the site's PUE
    weights: Weights
    when: WhenPolicy
    restart_s: float  # the time that one suspension costs
    most_restarts: float
    running_in: int = NO_ZONE  # the zone in which it runs now
    from_s: float = -math.inf  # it does not run before, unless it continues now
    limit: CarbonLimit = UNLIMITED
    gpus: float = 0.0
    kept_start_s: float | None = None  # the start planned before
    memory_bytes: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class SlotPlan:
    """The slots in which a workload runs, and the counterfactual."""

    chosen: Chosen
    run_segments: tuple[tuple[float, float], ...]  # begin and end of each, to keep room for


@dataclass(frozen=True, slots=True, eq=False)
class _View:
    """One zone's slots from `now_s` on, and how a workload may run in them."""

    work: Interruptible
    zone: int
    now_s: float
    slot_s: float
    cost: Floats  # [S] of each slot, by the rule
    weighted: Floats  # [S] money and carbon only
    seen: Floats  # [3,S] carbon, price and merit
    busiest: Floats  # [S]
    first: int  # the first slot in which it may run, unless it continues now

    @property
    def runtime_s(self) -> float:
        return float(self.work.runtime_s[self.zone])

    @property
    def is_running(self) -> bool:
        return self.work.running_in != NO_ZONE


def plan_slots(
    outlook: Outlook,
    plan: CorePlan,
    work: Interruptible,
    now_s: float,
    *,
    thresholds: Thresholds | None,
) -> SlotPlan | None:
    """Return the cheapest slots by the workload's when rule; the plan is not changed.

    Slots begin at `now_s`. Return None if there is no choice: the workload may not wait for a
    slot, no zone can take it, the forecast is too short, or its carbon limit forbids these slots.
    It then continues, or is planned like other work. Without thresholds and limit the answer equals
    the simulator's.
    """
    spare = _spare_slots(outlook, work, now_s)
    needed = _needed(work.runtime_s, outlook.slot_s)
    if spare < 1 or (needed.max() < 2 and work.running_in == NO_ZONE):
        return None
    counts = np.minimum(np.maximum(needed, 1) + spare, outlook.slots_ahead(now_s))
    zones = np.flatnonzero(np.isfinite(work.runtime_s) & (counts > needed)).tolist()
    zones = [zone for zone in zones if work.running_in in (NO_ZONE, zone)]
    if not zones:
        return None
    needs, count = (work.cpu_cores, work.gpus, work.memory_bytes), int(counts.max())
    by_zone = np.array([work.runtime_s, work.power_w])
    slots, raw = see_slots(outlook, plan, now_s, by_zone, needs, work.weights, count)
    first, cost = _first(work, now_s, outlook.slot_s), _costs(work, slots)
    views = [
        _View(
            work,
            zone,
            now_s,
            outlook.slot_s,
            cost[zone, : counts[zone]],
            slots.weighted_over_run[zone, : counts[zone]],
            raw[:, zone, : counts[zone]],
            slots.busiest_over_run[zone, : counts[zone]],
            first,
        )
        for zone in zones
    ]
    answers = [(view, *_cheapest(view)) for view in views]
    view, chosen, total = min(answers, key=lambda answer: answer[2])  # of equal ones the first
    answer = _judged(view, chosen, total, thresholds)
    return answer if _is_allowed(answer.chosen, work.limit) else None


def _costs(work: Interruptible, slots: SlotColumns) -> Floats:
    """Return the cost of each slot, [Z,S]; a rule, or model, sees only zones that can take it."""
    costs, able = np.full(slots.wait_s.shape, np.inf), np.isfinite(work.runtime_s)
    costs[able] = work.when(SlotColumns._make(each[able] for each in slots))
    return costs


def _is_allowed(chosen: Chosen, limit: CarbonLimit) -> bool:
    """Return whether a limit allows the slots; what is unknown counts as equal."""
    run, now = chosen.run, chosen.run_now
    if run.carbon_g is None or now.carbon_g is None:
        return True
    saved = 0.0 if run.cost is None or now.cost is None else now.cost - run.cost
    return is_within(run.carbon_g, saved, now.carbon_g, limit)


def _spare_slots(outlook: Outlook, work: Interruptible, now_s: float) -> int:
    spare = (work.latest_s - now_s) / outlook.slot_s + _ROUNDING
    return math.floor(min(max(spare, 0.0), MOST_STARTS))


def _needed(runtime_s: Floats, slot_s: float) -> Integers:
    finite = np.where(np.isinf(runtime_s), 0.0, runtime_s)
    needed: Integers = np.ceil(finite / slot_s - _ROUNDING).astype(np.int64)
    return needed


def _first(work: Interruptible, now_s: float, slot_s: float) -> int:
    """Return the first slot in which work may run; waiting work may start within a slot."""
    if work.from_s <= now_s:
        return 0
    slots = (work.from_s - now_s) / slot_s
    return math.floor(slots) if work.running_in == NO_ZONE else math.ceil(slots - _ROUNDING)


def _cheapest(view: _View) -> tuple[Slots, float]:
    """Return the cheapest slots and their cost; only continued work runs before `view.first`."""
    chosen, total = _choose(view, 0, view.runtime_s, is_running=view.is_running)
    if chosen[0] if view.is_running else not view.first:
        return chosen, total
    if chosen.argmax() >= view.first:
        return chosen, total
    now = _at_once(view)
    through = cost_of(now, view.cost, view.runtime_s / view.slot_s)
    restart_s = view.work.restart_s if view.is_running else 0.0
    if view.cost.size - view.first < _slots(view.runtime_s + restart_s, view.slot_s):
        return now, through
    later, total = _choose(view, view.first, view.runtime_s + restart_s, is_running=False)
    return (now, through) if view.is_running and through <= total else (later, total)


def _choose(view: _View, first: int, runtime_s: float, *, is_running: bool) -> tuple[Slots, float]:
    """Return the cheapest slots from `first` on, and their cost."""
    work, slot_s = view.work, view.slot_s
    one = (np.array([[each]]) for each in (work.restart_s, view.runtime_s, slot_s))
    restart = float(pause_if_worth(PauseColumns(*one))[0, 0])
    numbers = runtime_s, slot_s, work.restart_s, restart, work.most_restarts
    chosen, total = planned_slots(view.cost[first:], numbers, is_running=is_running)
    return np.concatenate((np.zeros(first, np.bool_), chosen)), total


def _at_once(view: _View) -> Slots:
    """Return the slots of a run without a pause, as soon as possible."""
    first = 0 if view.is_running else min(view.first, view.cost.size - 1)
    chosen = np.zeros(view.cost.size, np.bool_)
    chosen[first : first + _slots(view.runtime_s, view.slot_s)] = True
    return chosen


def _judged(view: _View, chosen: Slots, total: float, thresholds: Thresholds | None) -> SlotPlan:
    """Return the choice as a plan, or another one if it saves or changes too little."""
    now, why = _at_once(view), StartReason.PLANNED
    if thresholds is not None and view.work.kept_start_s is not None and not view.is_running:
        chosen, why = _kept(view, chosen, total, view.work.kept_start_s, thresholds.least_change)
    if chosen.argmax() == now.argmax():
        why = StartReason.NOW_IS_BEST
    saving = _saving(view, chosen, now)
    if thresholds is not None and not 0.0 < saving >= thresholds.least_saving:
        chosen, saving = now, 0.0
        why = why if why is StartReason.NOW_IS_BEST else StartReason.SAVES_TOO_LITTLE
    return _plan_of(view, chosen, now, saving, why)


def _kept(
    view: _View, chosen: Slots, total: float, kept_start_s: float, least_change: float
) -> tuple[Slots, StartReason]:
    """Return the choice, or slots from the earlier planned start if they are about as good."""
    place = round((kept_start_s - view.now_s) / view.slot_s)
    needed = _slots(view.runtime_s, view.slot_s)
    if place == chosen.argmax():
        return chosen, StartReason.KEPT
    if not view.first <= place <= view.cost.size - needed:
        return chosen, StartReason.PLANNED
    kept, cost = np.zeros(view.cost.size, np.bool_), float(view.cost[place])
    kept[place] = True
    left_s = view.runtime_s - view.slot_s
    if left_s > 0.0:
        rest, more = _choose(view, place + 1, left_s, is_running=True)
        kept, cost = kept | rest, cost + more
    if cost - total > least_change * abs(cost):
        return chosen, StartReason.PLANNED
    return kept, StartReason.KEPT


def _saving(view: _View, chosen: Slots, now: Slots) -> float:
    """Return the share of the weighted cost that is saved, restarts included."""
    spent = cost_of(chosen, view.weighted, _run_s(view, chosen) / view.slot_s)
    at_once = cost_of(now, view.weighted, view.runtime_s / view.slot_s)
    return (at_once - spent) / abs(at_once) if at_once else 0.0


def _run_s(view: _View, chosen: Slots) -> float:
    return view.runtime_s + restarts(chosen, view.is_running) * view.work.restart_s


def _plan_of(view: _View, chosen: Slots, now: Slots, saving: float, why: StartReason) -> SlotPlan:
    begins, ends = _edges(chosen)
    run_segments = tuple(
        (view.now_s + begin * view.slot_s, view.now_s + end * view.slot_s)
        for begin, end in zip(begins, ends, strict=True)
    )
    answer = Chosen(
        start_s=run_segments[0][0],
        run=_mean(view, chosen),
        run_now=_mean(view, now),
        saving=saving,
        why=why,
        has_room=bool(view.busiest[chosen].max() <= FULL),
        expected_s=run_segments[0][0],
        kept_zone=view.zone,
        kept_until_s=run_segments[0][1],
    )
    return SlotPlan(answer, run_segments)


def _edges(chosen: Slots) -> tuple[list[int], list[int]]:
    """Return the first slots of the run segments, and the slots after their ends."""
    steps = np.diff(np.concatenate(([0], chosen.astype(np.int8), [0])))
    return np.flatnonzero(steps > 0).tolist(), np.flatnonzero(steps < 0).tolist()


def _mean(view: _View, chosen: Slots) -> Mean:
    run_s = _run_s(view, chosen)
    used = slot_shares(chosen, run_s / view.slot_s)
    by_energy = used * view.seen[_MERIT][chosen]
    means = [float(view.seen[row][chosen] @ by_energy) / float(by_energy.sum())
             for row in (CARBON, PRICE)]  # fmt: skip
    carbon, price = (None if math.isnan(each) else each for each in means)
    merit = float(by_energy.sum()) / float(used.sum())
    return Mean(view.zone, run_s, float(view.work.power_w[view.zone]), carbon, price, merit)


def _slots(time_s: float, slot_s: float) -> int:
    return max(math.ceil(time_s / slot_s - _ROUNDING), 1)


def cost_of(chosen: Slots, cost: Floats, slots: float) -> float:
    """Return the cost of running for `slots` in the chosen ones; the last may be used in part."""
    return float(cost[chosen] @ slot_shares(chosen, slots))


def slot_shares(chosen: Slots, slots: float) -> Floats:
    """Return the used share of each chosen slot: 1, or less for the last of `slots`."""
    used: Floats = np.clip(slots - np.arange(int(chosen.sum())), 0.0, 1.0)
    return used
