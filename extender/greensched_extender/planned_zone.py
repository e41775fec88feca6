"""Prefers the zone in which a pod's run was planned, unless another is much better now.

Pure. docs/decisions/0017-the-planned-zone.md has the reasons.
"""

import math
from dataclasses import replace

from greensched_core.declarations import PlannedRun
from greensched_core.signals.steps import Step
from greensched_extender.grid import RunOutlook
from greensched_extender.scoring import Appraisal
from greensched_extender.view import View
from greensched_extender.zone_outcome import ZoneOutcome
from greensched_policies.encoding.weights import Weights
from greensched_policies.encoding.zone_preference import prefer_zone
from greensched_policies.library.scores import spread_scores

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

    It is unchanged unless the zone is honoured. `outlook` is of the view's zones, for a run from
    `now` (seconds since the epoch).
    """
    if not planned.start_s - _EARLIEST_S <= now <= planned.start_s + planned.runtime_s:
        return appraisal, ZoneOutcome.OTHER_TIME
    zones = view.facts.zones
    place = zones.index(planned.zone) if planned.zone in zones else -1
    is_there = view.facts.zone_of.take(appraisal.rows) == place
    if place < 0 or not is_there.any():
        return appraisal, ZoneOutcome.NOT_OFFERED
    if not _is_known(place, outlook, weights):
        return appraisal, ZoneOutcome.NO_SIGNAL
    if is_there.all():
        return appraisal, ZoneOutcome.HONOURED
    preferred = prefer_zone(appraisal.answer.relative_cost[0], is_there)
    if preferred[is_there].min() > preferred[~is_there].min():
        return appraisal, ZoneOutcome.BETTER_ELSEWHERE
    scores, best = spread_scores(preferred)
    return replace(appraisal, scores=scores, best=best), ZoneOutcome.HONOURED


def _is_known(place: int, outlook: RunOutlook, weights: Weights) -> bool:
    """Return whether a zone has fresh data of something that the weights count, if they do."""
    means, state = outlook.means, outlook.states[place]
    counted = [
        signal.step is Step.GRID_SIGNAL and math.isfinite(values[place])
        for weight, signal, values in (
            (weights.carbon, state.carbon, means.carbon_g_per_kwh),
            (weights.cost, state.price, means.price_per_mwh),
        )
        if weight > 0.0
    ]
    return any(counted) or not counted
