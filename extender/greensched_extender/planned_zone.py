"""Prefers the zone in which a pod's run was planned, unless it became worse than another.

Pure. docs/decisions/0017-the-planned-zone.md has the reasons.
"""

import math
from dataclasses import replace

import numpy as np

from greensched_core.declarations import PlannedRun
from greensched_core.signals.steps import Step
from greensched_extender.grid import RunOutlook
from greensched_extender.scoring import Appraisal
from greensched_extender.view import View
from greensched_extender.zone_outcome import ZoneOutcome
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.scores import spread_scores
from greensched_policies.encoding.weights import Weights
from greensched_policies.encoding.zone_preference import MARGIN, prefer_zone

_EARLIEST_S = 900.0  # a run may begin a slot of the plan before its time


def prefer_planned(
    view: View,
    appraisal: Appraisal,
    planned: PlannedRun,
    outlook: RunOutlook,
    weights: Weights,
    now: float,
) -> tuple[Appraisal, ZoneOutcome]:
    """Return the appraisal in which nodes of the planned zone score best, and what was decided.

    It is unchanged unless the zone is honoured: the run costs there at most MARGIN more than
    planned, by the grid, or at most MARGIN more than on the cheapest node elsewhere.
    `outlook` is of the view's zones, for a run from `now` (seconds since the epoch).
    """
    if not planned.start_s - _EARLIEST_S <= now <= planned.start_s + planned.runtime_s:
        return appraisal, ZoneOutcome.OTHER_TIME
    zones = view.facts.zones
    place = zones.index(planned.zone) if planned.zone in zones else -1
    is_there = view.facts.zone_of.take(appraisal.rows) == place
    if place < 0 or not is_there.any():
        return appraisal, ZoneOutcome.NOT_OFFERED
    grown = _grown(planned, place, outlook, weights)
    if math.isnan(grown):
        return appraisal, ZoneOutcome.NO_SIGNAL
    if is_there.all():
        return appraisal, ZoneOutcome.HONOURED
    cost = appraisal.answer.relative_cost[0]
    there, elsewhere = float(cost[is_there].min()), float(cost[~is_there].min())
    if grown > MARGIN and there > elsewhere + MARGIN * abs(elsewhere):
        return appraisal, ZoneOutcome.BECAME_WORSE
    preferred = prefer_zone(cost, is_there)
    scores = spread_scores(preferred)
    return replace(appraisal, preferred_cost=preferred, scores=scores), ZoneOutcome.HONOURED


def _grown(planned: PlannedRun, place: int, outlook: RunOutlook, weights: Weights) -> float:
    """Return by which share the weighted grid of a zone is above the plan's.

    NaN without fresh data of that zone; infinite if the plan had no data that the weights count.
    """
    grown = counted = 0.0
    means, state = outlook.means, outlook.states[place]
    for weight, then, now, signal in (
        (weights.carbon, planned.carbon_g_per_kwh, means.carbon_g_per_kwh, state.carbon),
        (weights.cost, planned.price_per_mwh, means.price_per_mwh, state.price),
    ):
        if weight <= 0.0 or math.isnan(then):
            continue
        if signal.step is not Step.GRID_SIGNAL:
            return math.nan
        grown += weight * (float(now[place]) - then) / _magnitude(then, now)
        counted += weight
    return grown / counted if counted else math.inf


def _magnitude(then: float, now: Floats) -> float:
    """Return what a change is a share of: prices may be near zero, so not of them alone."""
    known = now[np.isfinite(now)]
    mean = float(np.abs(known).mean()) if known.size else 0.0
    return max(abs(then), mean) or 1.0
