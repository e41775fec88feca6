"""Elastic work: its number of workers in each slot, and its throughput."""

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.costs.pausing import cheapest_slots

# Work done by 1, 2, 3 … workers relative to one, a row for each kind of work, [C,K]; curves shorter
# than the longest continue flat. The first row is for work that does not scale.
NO_SCALING = np.ones((1, 1))

_ROUNDING = 1e-9  # of a slot's work, and of a plan's cost
_TRIES = 8  # to fit the restarts of a plan into its slots


def useful_workers(throughput: Floats) -> int:
    """Return the number of workers after which one more no longer adds throughput."""
    workers, before = 0, 0.0
    for done in throughput:
        if done <= before:
            break
        workers, before = workers + 1, done
    return workers


def scaled_slots(cost: Floats, throughput: Floats, needed: float) -> Integers:
    """Return the number of workers of elastic work in each slot, [S].

    `cost`, [K,S], is a when rule's cost of each slot per worker, by the number of workers.
    `throughput`, [K], is the work that they do in a slot, and `needed` the work to do. If it
    cannot be done, all slots get as many workers as are useful.

    Greedy algorithm of Hanafy et al., "CarbonScaler: Leveraging Cloud Workload Elasticity for
    Optimizing Carbon-Efficiency", Proc. ACM Meas. Anal. Comput. Syst. 7(3), 2023, as in
    `carbon_scaler`: add one worker at a time, in the slot with the least added cost per added work,
    the earliest of equal ones. A worker that adds no work is never added.
    """
    slots = cost.shape[1]
    workers = np.zeros(slots, np.int64)
    gain = throughput.copy()
    gain[1:] -= throughput[:-1]
    useful = useful_workers(throughput)
    step = cost[0] / gain[0]  # cost of one more worker per added work
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
    """Return the number of workers in each slot, [S], and the cost, restarts included.

    As `scaled_slots`; `runtime_s` is the time that one worker needs for the remaining work. Each
    change of the number of workers after the first start takes `restart_s` more. `workers_now` is
    0 for work that does not run. A run without a change is returned if it costs no more and ends
    in time, or if more than `most_restarts` would be needed. Work that cannot end in time gets the
    workers that end it soonest.
    """
    work = runtime_s / slot_s
    through, least = _without_change(cost, throughput, work, workers_now)
    target = work
    for _ in range(_TRIES):
        scaled = scaled_slots(cost, throughput, target)
        changes, lost = _restarts(scaled, throughput, restart_s / slot_s, workers_now)
        done = _work(scaled, throughput)
        if done - lost >= work - _ROUNDING:
            total = _cost_of(scaled, cost, throughput, work + lost)
            if changes <= most_restarts and not total >= least - _ROUNDING * abs(least):
                return scaled, total
            break
        if done < target - _ROUNDING:
            break
        target = work + lost  # always more than before
    if np.isfinite(least):
        return through, least
    return _as_fast_as_can_be(cost.shape[1], throughput, work, restart_s / slot_s, workers_now)


def _as_fast_as_can_be(
    slots: int, throughput: Floats, work: float, restart: float, workers_now: int
) -> tuple[Integers, float]:
    """Return the workers that end late work soonest; a restart may cost more time than it saves."""
    workers = useful_workers(throughput)
    if workers_now > 0:
        soonest = restart + work / throughput[workers - 1]
        workers = workers_now if work / throughput[workers_now - 1] <= soonest else workers
    return np.full(slots, workers), np.inf


def _without_change(
    cost: Floats, throughput: Floats, work: float, workers_now: int
) -> tuple[Integers, float]:
    """Return the cheapest run without a change, and its cost; infinity if none ends in time."""
    workers, slots = max(workers_now, 1), cost.shape[1]
    found = np.zeros(slots, np.int64)
    needed = max(int(np.ceil(work / throughput[workers - 1] - _ROUNDING)), 1)
    if needed > slots:
        return found, np.inf
    chosen, _ = cheapest_slots(cost[workers - 1], needed, np.inf, workers_now > 0)
    for slot in range(slots):
        found[slot] = workers if chosen[slot] else 0
    return found, _cost_of(found, cost, throughput, work)


def _restarts(
    workers: Integers, throughput: Floats, restart: float, workers_now: int
) -> tuple[int, float]:
    """Return how often the number of workers changes, pauses included, and the work lost by it."""
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
    """Return the cost of the work; the last slot may be needed only in part."""
    left, total = work, 0.0
    for slot in range(workers.size):
        now = workers[slot]
        if now > 0:
            total += now * cost[now - 1, slot] * max(min(left / throughput[now - 1], 1.0), 0.0)
            left -= throughput[now - 1]
    return total
