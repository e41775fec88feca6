"""Elastic work: with how many workers it runs in which slots, and how fast it then is."""

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.costs.pausing import cheapest_slots

# Work done with 1, 2, 3 … workers relative to one, a row for each kind of work, [C,K]; a curve that
# is shorter than the longest goes on flat. The first row stands for work that does not scale.
NO_SCALING = np.ones((1, 1))

_ROUNDING = 1e-9  # of a slot's work, and of a plan's cost
_TRIES = 8  # at finding room for what the restarts of a plan take


def useful_workers(throughput: Floats) -> int:
    """Return with how many workers work goes fastest: the first after which one more adds none."""
    workers, before = 0, 0.0
    for done in throughput:
        if done <= before:
            break
        workers, before = workers + 1, done
    return workers


def scaled_slots(cost: Floats, throughput: Floats, needed: float) -> Integers:
    """Return how many workers elastic work has in each slot, [S].

    `cost`, [K,S], is what a when rule says of each slot for work of so many workers, per worker;
    `throughput`, [K], is the work that they do in a slot, and `needed` what is to be done. Where it
    cannot be done, all slots have as many workers as are of use.

    Greedy of Hanafy et al., "CarbonScaler: Leveraging Cloud Workload Elasticity for Optimizing
    Carbon-Efficiency", Proc. ACM Meas. Anal. Comput. Syst. 7(3), 2023, as `carbon_scaler`: one
    worker more, in whichever slot, for which the cost that it adds is least for the work that it
    adds; the earliest of equal ones. One that adds no work is never taken.
    """
    slots = cost.shape[1]
    workers = np.zeros(slots, np.int64)
    gain = throughput.copy()
    gain[1:] -= throughput[:-1]
    useful = useful_workers(throughput)
    step = cost[0] / gain[0]  # of one worker more, for each work that it adds
    left = needed
    while left > _ROUNDING:
        slot = int(np.argmin(step))
        if np.isinf(step[slot]):
            break
        left -= gain[workers[slot]]
        workers[slot] += 1
        now = workers[slot]
        step[slot] = np.inf
        if now < useful:
            added = (now + 1) * cost[now, slot] - now * cost[now - 1, slot]
            step[slot] = added / gain[now]
    return workers


def scaled_plan(
    cost: Floats,
    throughput: Floats,
    runtime_s: float,
    slot_s: float,
    restart_s: float,
    most_restarts: float,
    workers_now: int,
) -> tuple[Integers, float]:
    """Return how many workers work has in each slot, [S], and what that costs, restarts included.

    As `scaled_slots`; `runtime_s` is what one worker would take for what is left. Each change of
    the number of workers but the first start takes `restart_s` beside; work that runs has
    `workers_now`, else that is 0. A run without a change is returned where that costs no more and
    ends in time, or more than `most_restarts` would be needed. Work that cannot end in time has as
    many workers as end it soonest.
    """
    whole = runtime_s / slot_s
    through, least = _without_change(cost, throughput, whole, workers_now)
    asked = whole
    for _ in range(_TRIES):
        scaled = scaled_slots(cost, throughput, asked)
        changes, lost = _restarts(scaled, throughput, restart_s / slot_s, workers_now)
        done = _work(scaled, throughput)
        if done - lost >= whole - _ROUNDING:
            total = _cost_of(scaled, cost, throughput, whole + lost)
            if changes <= most_restarts and not total >= least - _ROUNDING * abs(least):
                return scaled, total
            break
        if done < asked - _ROUNDING:
            break
        asked = whole + lost  # more than what was asked before
    if np.isfinite(least):
        return through, least
    return _as_fast_as_can_be(cost.shape[1], throughput, whole, restart_s / slot_s, workers_now)


def _as_fast_as_can_be(
    slots: int, throughput: Floats, whole: float, restart: float, workers_now: int
) -> tuple[Integers, float]:
    """Return the workers that end work soonest which is late anyway: a restart may take longer."""
    workers = useful_workers(throughput)
    if workers_now > 0:
        soonest = restart + whole / throughput[workers - 1]
        workers = workers_now if whole / throughput[workers_now - 1] <= soonest else workers
    return np.full(slots, workers), np.inf


def _without_change(
    cost: Floats, throughput: Floats, whole: float, workers_now: int
) -> tuple[Integers, float]:
    """Return the cheapest run without a change, and its cost; infinity if none ends in time."""
    workers, slots = max(workers_now, 1), cost.shape[1]
    found = np.zeros(slots, np.int64)
    needed = max(int(np.ceil(whole / throughput[workers - 1] - _ROUNDING)), 1)
    if needed > slots:
        return found, np.inf
    chosen, _ = cheapest_slots(cost[workers - 1], needed, np.inf, workers_now > 0)
    for slot in range(slots):
        found[slot] = workers if chosen[slot] else 0
    return found, _cost_of(found, cost, throughput, whole)


def _restarts(
    workers: Integers, throughput: Floats, restart: float, workers_now: int
) -> tuple[int, float]:
    """Return how often the number of workers changes, pauses included, and the work that takes."""
    changes, lost, before = 0, 0.0, workers_now
    has_run = workers_now > 0
    for now in workers:
        if now > 0 and now != before and has_run:
            changes += 1
            lost += restart * throughput[now - 1]
        has_run = has_run or now > 0
        before = now
    return changes, lost


def _work(workers: Integers, throughput: Floats) -> float:
    done = 0.0
    for now in workers:
        if now > 0:
            done += throughput[now - 1]
    return done


def _cost_of(workers: Integers, cost: Floats, throughput: Floats, work: float) -> float:
    """Return what so much work costs; the last slot may be needed in part only."""
    left, total = work, 0.0
    for slot in range(workers.size):
        now = workers[slot]
        if now > 0:
            total += now * cost[now - 1, slot] * max(min(left / throughput[now - 1], 1.0), 0.0)
            left -= throughput[now - 1]
    return total
