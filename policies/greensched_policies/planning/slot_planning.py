"""Chooses the slots of the forecast and the zone for a workload that may be suspended.

`kernel/slot_choice.py` chooses, compiled; the simulator's engine has the same functions. Without
thresholds and limit the answer equals that of the simulator's `choose_runs`; a test compares both.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from greensched_policies.costs.cost import Floats
from greensched_policies.costs.pausing import Slots
from greensched_policies.costs.slot_window import first_slot, slot_counts
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import UNLIMITED, CarbonLimit, Weights
from greensched_policies.library.functions import (
    CHOICE_HAS_ROOM,
    CHOICE_RUN,
    CHOICE_SAVING,
    CHOICE_WHY,
    CHOICE_ZONE,
    CHOICE_ZONE_NOW,
    MOST_STARTS,
)
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.library_calls import choose_slots, see_slots
from greensched_policies.planning.outlook import Outlook
from greensched_policies.planning.planning import NO_ZONE, Chosen, Mean, StartReason, Thresholds
from greensched_policies.rules.catalogue import WhenPolicy

_REASONS = tuple(StartReason)


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
    waits_for_room: bool = False  # whether it is held while the plan has no room for it


@dataclass(frozen=True, slots=True, eq=False)
class SlotPlan:
    """The slots in which a workload runs, and the counterfactual."""

    chosen: Chosen
    run_segments: tuple[tuple[float, float], ...]  # begin and end of each, to keep room for


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
    slot_s, slack_s = outlook.slot_s, work.latest_s - now_s
    ahead = outlook.slots_ahead(now_s)
    counts = slot_counts(work.runtime_s, ahead, slack_s, slot_s, work.running_in, MOST_STARTS)
    count = int(counts.max())
    if count < 1 or not np.isfinite(work.runtime_s).any():
        return None
    needs, by_zone = (work.cpu_cores, work.gpus, work.memory_bytes), _by_zone(work)
    slots, raw = see_slots(outlook, plan, now_s, by_zone, needs, work.weights, count)
    seen = _costs(work, slots), slots, raw, counts
    numbers = _numbers(work, now_s, slot_s, thresholds)
    chosen, told = choose_slots(seen, by_zone, numbers, work.running_in)
    return None if told[CHOICE_ZONE] == NO_ZONE else _plan_of(work, chosen, told, now_s, slot_s)


def _by_zone(work: Interruptible) -> Floats:
    """Return runtimes and watts, [2,Z]."""
    return np.array([work.runtime_s, work.power_w])


def _numbers(
    work: Interruptible, now_s: float, slot_s: float, thresholds: Thresholds | None
) -> tuple[float, ...]:
    """Return the numbers that the library takes."""
    kept_s, limit = work.kept_start_s, work.limit
    kept = math.nan if kept_s is None else float(round((kept_s - now_s) / slot_s))
    saving, change = (math.nan, 0.0) if thresholds is None else (
        thresholds.least_saving, thresholds.least_change
    )  # fmt: skip
    first = first_slot(work.from_s - now_s, slot_s, work.running_in)
    return (
        slot_s, work.restart_s, work.most_restarts, first, kept, saving, change,
        limit.price_per_g, limit.at_arrival_g, float(work.waits_for_room),
    )  # fmt: skip


def _costs(work: Interruptible, slots: SlotColumns) -> Floats:
    """Return the cost of each slot, [Z,S]; a rule, or model, sees only zones that can take it."""
    costs, able = np.full(slots.wait_s.shape, np.inf), np.isfinite(work.runtime_s)
    costs[able] = work.when(SlotColumns._make(each[able] for each in slots))
    return costs


def _plan_of(
    work: Interruptible, chosen: Slots, told: Sequence[float], now_s: float, slot_s: float
) -> SlotPlan:
    zone = int(told[CHOICE_ZONE])
    begins, ends = _edges(chosen)
    run_segments = tuple(
        (now_s + begin * slot_s, now_s + end * slot_s)
        for begin, end in zip(begins, ends, strict=True)
    )
    zone_now = int(told[CHOICE_ZONE_NOW])
    answer = Chosen(
        start_s=run_segments[0][0],
        run=_mean(zone, work, told[CHOICE_RUN : CHOICE_RUN + 4]),
        run_now=_mean(zone_now, work, told[CHOICE_RUN + 4 :]),
        saving=told[CHOICE_SAVING],
        why=_REASONS[int(told[CHOICE_WHY])],
        has_room=bool(told[CHOICE_HAS_ROOM]),
        expected_s=run_segments[0][0],
        kept_zone=zone,
        kept_until_s=run_segments[0][1],
    )
    return SlotPlan(answer, run_segments)


def _edges(chosen: Slots) -> tuple[list[int], list[int]]:
    """Return the first slots of the run segments, and the slots after their ends."""
    steps = np.diff(np.concatenate(([0], chosen.astype(np.int8), [0])))
    return np.flatnonzero(steps > 0).tolist(), np.flatnonzero(steps < 0).tolist()


def _mean(zone: int, work: Interruptible, means: Sequence[float]) -> Mean:
    power_w = float(work.power_w[zone])
    run_s, carbon, price, merit = means
    carbon_g, price_per_mwh = (None if math.isnan(each) else each for each in (carbon, price))
    return Mean(zone, run_s, power_w, carbon_g, price_per_mwh, merit)
