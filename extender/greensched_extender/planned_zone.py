"""Prefers the zone in which a pod's run was planned, unless another is much better now.

Pure. docs/decisions/0017-the-planned-zone.md has the reasons.
"""

import math
from collections.abc import Sequence
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
from greensched_policies.library.seeing_nodes import NO_PLANNED_ZONE

_EARLIEST_S = 900.0  # a run may begin a slot of the plan before its time


def place_due(planned: PlannedRun, zones: Sequence[str], now: float) -> int:
    """Return the place among `zones` of the zone in which a run was planned.

    It is NO_PLANNED_ZONE unless `now`, in seconds since the epoch, is about the time of the run.
    """
    if not _is_due(planned, now) or planned.zone not in zones:
        return NO_PLANNED_ZONE
    return zones.index(planned.zone)


def _is_due(planned: PlannedRun, now: float) -> bool:
    return planned.start_s - _EARLIEST_S <= now <= planned.start_s + planned.runtime_s


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
    if not _is_due(planned, now):
        return appraisal, ZoneOutcome.OTHER_TIME
    place = place_due(planned, view.facts.zones, now)
    is_there = view.facts.zone_of.take(appraisal.rows) == place
    if place == NO_PLANNED_ZONE or not is_there.any():
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
