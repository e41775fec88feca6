"""Sentences that explain a plan to users."""

from greensched_core.signals.timestamps import format_timestamp
from greensched_core.units import change, percent_text, signed_percent
from greensched_operator.holding.holding import due_s
from greensched_operator.planning.situation import Planned
from greensched_policies.costs.late_runs import late_share
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.planning.planning import NO_ZONE, Chosen, StartReason

_LEAST_TOLD = 0.005  # a share that rounds to one percent or more


def why_now(planned: Planned) -> str:
    """Return why a workload starts now."""
    chosen = planned.chosen
    if chosen.why is StartReason.CARBON_LIMIT:
        return "better starts emit more than its policy's carbonLimit allows"
    left_s = planned.waiting.terms.latest_start_s - planned.start_s
    if chosen.why is StartReason.NO_CHOICE and left_s > SLOT_S:
        return (
            f"there is no forecast for zone {planned.zone or 'unknown'}: it has no GridSignal, "
            "or one without a forecast"
        )
    why = chosen.why.value.replace("-", " ")
    if chosen.lacks_room:
        return f"{why}: running and planned work leave no room at better starts"
    return f"{why}: no later start saves enough"


def why_held(planned: Planned) -> str:
    """Return why a workload waits, and its latest start."""
    chosen, terms = planned.chosen, planned.waiting.terms
    latest = f"latest start {format_timestamp(round(terms.latest_start_s))} ({terms.bound})"
    if chosen.why is StartReason.NO_ROOM:
        return f"running and planned work leave no room before{grid_words(chosen)}; {latest}"
    told = f"{both_sides(chosen)}{grid_words(chosen)}; {latest}"
    return f"{_not_before(planned)}: {told}" if chosen.why is StartReason.NOT_BEFORE else told


def _not_before(planned: Planned) -> str:
    """Return what allows no start before the planned one."""
    terms, quiet = planned.waiting.terms, planned.waiting.policy.quiet_hours
    if abs(planned.start_s - terms.start_from_s) <= SLOT_S:
        return "its window opens then"
    limit = "quiet hours" if quiet.is_quiet(planned.start_s - SLOT_S) else "its namespace's budget"
    if planned.start_s >= terms.latest_start_s:
        return f"{limit} would hold it beyond its latest start"
    return "quiet hours end then" if limit == "quiet hours" else f"{limit} begins anew then"


def both_sides(chosen: Chosen) -> str:
    """Return how carbon and cost of the planned run differ from the soonest run.

    Restarts are included. The soonest run starts now, or at the first start with room.
    """
    changes = [
        f"{what} {signed_percent(share)}"
        for what, share in zip(("carbon", "cost"), carbon_and_cost_change(chosen), strict=True)
        if share is not None
    ]
    if not changes:
        return f"saves {percent_text(chosen.saving)} of its weighted cost"
    if chosen.soonest_s is None:
        return f"{', '.join(changes)} against running now"
    soonest = format_timestamp(round(chosen.soonest_s))
    return f"{', '.join(changes)} against {soonest}, the first start with room"


def carbon_and_cost_change(chosen: Chosen) -> tuple[float | None, float | None]:
    """Return how carbon and cost differ from a run now, as shares of its; None if unknown."""
    run, now = chosen.run, chosen.run_now
    return change(run.carbon_g, now.carbon_g), change(run.cost, now.cost)


def late_chance(planned: Planned) -> float | None:
    """Return the chance that a workload ends after its deadline; None without one.

    It starts as planned, after the policy's start delay, in the planned zone.
    """
    chosen, terms = planned.chosen, planned.waiting.terms
    if terms.deadline_s is None or chosen.run.zone == NO_ZONE:
        return None
    left_s = due_s(terms, planned.waiting.policy) - planned.start_s
    return round(late_share(left_s, chosen.run.runtime_s, terms.runtime_error), 5)


def grid_words(chosen: Chosen) -> str:
    """Return carbon intensity, price and energy of the planned run, compared with a start now.

    Prices are in the zone's currency; energy is told if it differs; "" where nothing is known.
    """
    text = ""
    for then, now, unit in (
        (chosen.run.carbon_g_per_kwh, chosen.run_now.carbon_g_per_kwh, "g/kWh"),
        (chosen.run.price_per_mwh, chosen.run_now.price_per_mwh, "per MWh"),
    ):
        if then is not None and now is not None:
            text += f", {then:.0f} instead of {now:.0f} {unit}"
    energy = change(chosen.run.energy_kwh, chosen.run_now.energy_kwh)
    if text and energy is not None and abs(energy) >= _LEAST_TOLD:
        text += f", energy {signed_percent(energy)}"
    return text
