"""What a plan, or a pause, writes on its workload, and from which it is planned again."""

import msgspec

from greensched_core import labels
from greensched_core.durations import format_duration
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.judging import arrived_s
from greensched_operator.holding.pause_terms import JobProgress
from greensched_operator.planning.plan_words import carbon_and_cost_change, late_chance
from greensched_operator.planning.situation import Planned


def pause_annotations(planned: Planned, progress: JobProgress) -> dict[str, str]:
    """Return the annotations of a paused Job from which it is judged and planned again."""
    return {
        labels.LATEST_START: format_timestamp(int(planned.waiting.terms.latest_start_s)),
        labels.DECISION: msgspec.json.encode(decision_of(planned)).decode(),
        labels.PLANNED_START: format_timestamp(round(planned.start_s)),
        # Shows that we suspended the Job, even after a user has removed the other annotations.
        labels.HELD_AT: format_timestamp(round(arrived_s(planned.waiting.work), 3)),
        **progress.annotations(),
    }


def decision_of(planned: Planned) -> dict[str, object]:
    """Return the basis of a plan, as the workload's annotation has it.

    Placement reads the planned run again: `greensched_core.declarations.read_planned_run`.
    """
    chosen, terms = planned.chosen, planned.waiting.terms
    runtime = format_duration(terms.runtime_s)
    carbon, cost = carbon_and_cost_change(chosen)
    return {
        "why": chosen.why,
        "saving": round(chosen.saving, 4),
        "zone": planned.zone,
        "start": format_timestamp(round(planned.start_s)),
        "runtimeSeconds": round(terms.runtime_s, 3),
        "carbonChange": None if carbon is None else round(carbon, 4),
        "costChange": None if cost is None else round(cost, 4),
        "carbonGramsAtArrival": planned.at_arrival_g,
        "carbonGramsPerKwh": [chosen.run.carbon_g_per_kwh, chosen.run_now.carbon_g_per_kwh],
        "pricePerMwh": [chosen.run.price_per_mwh, chosen.run_now.price_per_mwh],
        "runtime": f"{runtime} ({terms.runtime_from})",
        "policy": planned.waiting.policy.title,
        "lateChance": late_chance(planned),
        "deadline": None if terms.deadline_s is None else format_timestamp(terms.deadline_s),
        "runtimeError": round(terms.runtime_error, 3),
        "onTimeTarget": planned.waiting.policy.on_time_target,
    }
