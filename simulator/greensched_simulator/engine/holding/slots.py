"""The slots in which a job runs that a GreenPolicy may pause, and their room in the plan.

`kernel/slot_choice.py` chooses them, as for the operator.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.compiling.compiled import compiled, fast, inlined
from greensched_policies.costs import quiet_spans, slot_window
from greensched_policies.costs.cost import Floats
from greensched_policies.costs.slot_window import NOT_RUNNING
from greensched_policies.encoding.weights import CarbonLimit, Weights
from greensched_policies.kernel.later_room import ALL_ROOM
from greensched_policies.kernel.slot_choice import (
    CARBON,
    MERIT,
    PRICE,
    RUN_S,
    SeenSlots,
    SlotChoice,
    SlotWork,
    choose_slots,
    see_all_slots,
)
from greensched_policies.kernel.starts import SLOT_COLUMNS, PendingWork, starts_known
from greensched_policies.library import functions as rows
from greensched_simulator.engine.execution.running import add_room
from greensched_simulator.engine.execution.workers import all_cores, all_gpus
from greensched_simulator.engine.holding.budgets import budget_opens_s, earliest_start_s
from greensched_simulator.engine.holding.hold import (
    MOST_RESTARTS,
    RESTART_S,
    Hold,
    basis_of,
    is_pausable,
)
from greensched_simulator.engine.holding.learned import costs_of
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE

_slot_counts = compiled(slot_window.slot_counts)
_first_slot = compiled(slot_window.first_slot)
_may_start = compiled(quiet_spans.may_start, inlined)


class Remaining(NamedTuple):
    """The rest of a job, whose slots are to be chosen; times are since the run's begin."""

    runtime_s: Floats  # [Z]
    latest_s: float
    restart_s: float
    most_restarts: float
    running_in: int  # its zone; NOT_RUNNING
    from_s: float  # it does not run before, unless it continues now
    kept_s: float  # the start planned before; NaN: none


@inlined
def held_in_slots(job: int, begin_s: float, run: Run, hold: Hold) -> bool:
    """Choose the slots of a held job that may be paused, and keep their room in the plan.

    Return False if it may not, or has no choice: then it is planned as one run.
    """
    return is_pausable(job, hold) and _choose_slots(job, begin_s, run, hold)


@fast
def _choose_slots(job: int, begin_s: float, run: Run, hold: Hold) -> bool:
    """Do the same for a job that may be paused."""
    paused, asked, quiet_s = hold.paused, hold.asked, hold.terms.quiet_s
    from_s = earliest_start_s(job, begin_s, budget_opens_s(begin_s, hold), hold)
    rest = Remaining(
        run.estimates.runtime_s[job], asked[rows.LATEST_S, job], paused[RESTART_S, job],
        paused[MOST_RESTARTS, job], NOT_RUNNING, from_s, asked[rows.KEPT_S, job],
    )  # fmt: skip
    choice = choose_for(job, begin_s, rest, run, hold)
    if choice.zone == NOT_RUNNING:
        return False
    first_s = begin_s + np.argmax(choice.chosen) * run.terms.slot_s
    if not _may_start(first_s, run.terms.slot_s, from_s, quiet_s[0, 0], quiet_s[1, 0]):
        return False
    note_slots(job, begin_s, choice, run, hold)
    return True


@fast
def choose_for(job: int, begin_s: float, rest: Remaining, run: Run, hold: Hold) -> SlotChoice:
    """Return the cheapest slots of a job in the present plan."""
    slot_s, asked, zones = run.terms.slot_s, hold.asked, rest.runtime_s.size
    ahead = np.empty(zones, np.int64)
    for zone in range(zones):
        ahead[zone] = starts_known(run.grid, zone, begin_s, slot_s)
    slack_s = rest.latest_s - begin_s
    counts = _slot_counts(rest.runtime_s, ahead, slack_s, slot_s, rest.running_in, rows.MOST_STARTS)
    count = max(counts.max(), 0)
    columns, raw = np.empty((SLOT_COLUMNS, zones, count)), np.empty((3, zones, count))
    cost, power_w = np.zeros((zones, count)), hold.terms.power_w[job]
    if count > 0:
        run_j = rest.runtime_s * power_w
        pending = PendingWork(
            begin_s, rest.runtime_s, asked[rows.CPU_CORES, job], asked[rows.GPUS, job],
            asked[rows.MEMORY_BYTES, job], ALL_ROOM, run_j,
        )  # fmt: skip
        weights = Weights(
            asked[rows.BY_PRICE, job], asked[rows.BY_CARBON, job], asked[rows.BY_TIME, job]
        )
        see_all_slots(basis_of(begin_s, run, hold), pending, weights, columns, raw)
        cost = costs_of(job, columns, rest.runtime_s, run, hold)
    work = SlotWork(
        rest.runtime_s, power_w, rest.restart_s, rest.most_restarts, rest.running_in,
        _first_slot(rest.from_s - begin_s, slot_s, rest.running_in),
        np.rint((rest.kept_s - begin_s) / slot_s),
        asked[rows.LEAST_SAVING, job], asked[rows.LEAST_CHANGE, job],
        CarbonLimit(asked[rows.PRICE_PER_G, job], asked[rows.AT_ARRIVAL_G, job]),
        asked[rows.WAITS_FOR_ROOM, job] != 0.0,
    )  # fmt: skip
    return choose_slots(SeenSlots(cost, columns[6], columns[7], raw, counts), work, slot_s)


@fast
def note_slots(job: int, begin_s: float, choice: SlotChoice, run: Run, hold: Hold) -> None:
    """Keep room for the chosen slots in the plan, and note the choice as the kernel notes a start.

    The record holds the first run segment; the agenda holds the others, in their order.
    """
    _note_choice(job, choice, run, hold)
    agenda, recorded, slot_s, chosen = run.agenda, run.recorded, run.terms.slot_s, choice.chosen
    cores, gpus = all_cores(job, run.jobs, recorded), all_gpus(job, run.jobs, recorded)
    place, last, is_first = 0, NOWHERE, True
    while place < chosen.size:
        begin = place
        while place < chosen.size and chosen[place] == chosen[begin]:
            place += 1
        if not chosen[begin]:
            continue
        from_s, until_s = begin_s + begin * slot_s, begin_s + place * slot_s
        add_room(job, choice.zone, from_s, until_s, cores, gpus, run)
        if is_first:
            is_first, recorded.planned_zone[job] = False, choice.zone
            recorded.kept_from_s[job], recorded.kept_until_s[job] = from_s, until_s
            recorded.kept_cores[job], recorded.kept_gpus[job] = cores, gpus
            hold.found[rows.PLACE, job] = hold.found[rows.EXPECTED, job] = begin
            continue
        if last == NOWHERE:
            agenda.first[job] = len(agenda.run_segments)
        else:
            before, following = agenda.run_segments[last], len(agenda.run_segments)
            agenda.run_segments[last] = (before[0], before[1], before[2], before[3], following)
        last = len(agenda.run_segments)
        agenda.run_segments.append((from_s, until_s, choice.zone, cores, NOWHERE))


@fast
def _note_choice(job: int, choice: SlotChoice, run: Run, hold: Hold) -> None:
    found, zone, run_means, now = hold.found, choice.zone, choice.run, choice.run_now
    found[rows.ZONE, job] = found[rows.ZONE_EXPECTED, job] = zone
    found[rows.ZONE_NOW, job] = choice.zone_now
    found[rows.WHY, job], found[rows.SAVING, job] = choice.why, choice.saving
    found[rows.CARBON, job], found[rows.PRICE, job] = run_means[CARBON], run_means[PRICE]
    found[rows.CARBON_NOW, job], found[rows.PRICE_NOW, job] = now[CARBON], now[PRICE]
    # A start's energy is that of its whole runtime; here restarts are added to it.
    longer = run_means[RUN_S] / run.estimates.runtime_s[job, zone]
    found[rows.MERIT, job], found[rows.MERIT_NOW, job] = run_means[MERIT] * longer, now[MERIT]
    hold.asked[rows.STAYS_IN, job], hold.asked[rows.SEEKS_ROOM, job] = rows.NO_ZONE_YET, 0.0


@fast
def forget_later_segments(job: int, run: Run) -> None:
    """Free the room of all run segments of a job after its next one."""
    agenda = run.agenda
    if agenda.first.size == 0:
        return
    place, gpus = agenda.first[job], run.recorded.kept_gpus[job]
    agenda.first[job] = NOWHERE
    while place != NOWHERE:
        from_s, until_s, zone, cores, place = agenda.run_segments[place]
        add_room(job, zone, from_s, until_s, -cores, -gpus, run)


@fast
def forget_all_segments(run: Run) -> None:
    """Forget the run segments of all jobs; the plan has been cleared."""
    if run.agenda.first.size > 0:
        run.agenda.run_segments.clear()
        run.agenda.first[:] = NOWHERE
