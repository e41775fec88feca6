"""The budget of a GreenPolicy: what has been spent in its present period, and what that delays.

As the operator's, it counts the estimate of each job that may wait, from its first start on.
"""

import numpy as np

from greensched_policies.compiling.compiled import borrowing, compiled, fast, inlined
from greensched_policies.costs import run_energy
from greensched_policies.library import functions as rows
from greensched_policies.planning import budgets, held_start
from greensched_simulator.engine.holding.hold import (
    FROM_S,
    KG,
    KG_NOW,
    KWH,
    KWH_NOW,
    PAUSES,
    PERIOD,
    Hold,
)
from greensched_simulator.engine.run import Run

_run_kwh = compiled(run_energy.run_kwh, inlined)
_opens_s = compiled(budgets.opens_s, inlined)
_has_moved = compiled(held_start.has_moved, inlined)


@borrowing
def budget_opens_s(now_s: float, hold: Hold) -> float:
    """Return the earliest start that the budget allows; minus infinity: any."""
    budget = hold.terms.budget
    if budget.ends_s.size == 0:
        return -np.inf
    end_s = _period_end_s(now_s, hold)
    return float(_opens_s(hold.spent[KWH], hold.spent[KG], budget.most_kwh, budget.most_kg, end_s))


@inlined
def earliest_start_s(job: int, now_s: float, opens_s: float, hold: Hold) -> float:
    """Return the earliest start of a job; no budget delays one that was paused."""
    if hold.paused.shape[1] == 0 or hold.paused[PAUSES, job] == 0.0:
        return max(now_s, opens_s)
    return max(now_s, float(hold.paused[FROM_S, job]))


@fast
def note_amounts(job: int, start_s: float, run: Run, hold: Hold) -> None:
    """Note what a job takes that was planned for this start, unless it was planned so before."""
    planned_s = np.rint(run.recorded.planned_s[job])  # written on objects in whole seconds
    if hold.amounts.shape[1] == 0 or not _has_moved(planned_s, start_s):
        return
    amounts = hold.amounts[:, job]
    amounts[KWH], amounts[KG] = _taken(job, rows.ZONE, rows.CARBON, rows.MERIT, run, hold)
    amounts[KWH_NOW], amounts[KG_NOW] = _taken(
        job, rows.ZONE_NOW, rows.CARBON_NOW, rows.MERIT_NOW, run, hold
    )


@inlined
def _taken(
    job: int, zone_row: int, carbon_row: int, merit_row: int, run: Run, hold: Hold
) -> tuple[float, float]:
    """Return the kWh and kg of a run that was found for a job; no kg where no carbon is known."""
    found = hold.found[:, job]
    zone = int(found[zone_row])
    runtime_s, power_w = run.estimates.runtime_s[job, zone], hold.terms.power_w[job, zone]
    kwh = _run_kwh(power_w, runtime_s, found[merit_row])
    grams = found[carbon_row] * kwh
    return kwh, 0.0 if np.isnan(grams) else grams / 1e3


@borrowing
def count_as_now(job: int, hold: Hold) -> None:
    """Let a job that is not released as planned take what it takes if it runs now."""
    if hold.amounts.shape[1] > 0:
        hold.amounts[KWH, job] = hold.amounts[KWH_NOW, job]
        hold.amounts[KG, job] = hold.amounts[KG_NOW, job]


@borrowing
def spend(job: int, now_s: float, hold: Hold) -> None:
    """Count a job that is released for the first time; at its latest start as one that runs now."""
    if hold.amounts.shape[1] == 0:
        return
    _period_end_s(now_s, hold)
    if now_s >= hold.asked[rows.LATEST_S, job]:
        count_as_now(job, hold)
    hold.spent[KWH] += hold.amounts[KWH, job]
    hold.spent[KG] += hold.amounts[KG, job]


@borrowing
def _period_end_s(now_s: float, hold: Hold) -> float:
    """Return the end of the present period; nothing has been spent in a new one."""
    counts, ends_s = hold.counts, hold.terms.budget.ends_s
    while ends_s[counts[PERIOD]] <= now_s and counts[PERIOD] + 1 < ends_s.size:
        counts[PERIOD] += 1
        hold.spent[:] = 0.0
    return float(ends_s[counts[PERIOD]])
