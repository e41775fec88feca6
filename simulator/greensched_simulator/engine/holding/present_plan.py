"""The plan as the operator has it: what runs, queues or is held now; nothing of what has ended.

A running job counts from the slot in which it began to the slot of its expected end, and an overdue
one in the present slot. A job that was released keeps its room until it has a node; not one that
never had a plan, or was released because held jobs would exceed their share.
"""

from greensched_policies.compiling.compiled import compiled, fast, inlined
from greensched_policies.encoding.slots import has_gpus, has_room
from greensched_policies.kernel.plan import slots_of
from greensched_policies.library.functions import (
    EXPECTED,
    NO_ROOM,
    NO_ZONE_YET,
    SEEKS_ROOM,
    STAYS_FROM_S,
    STAYS_IN,
    WHY,
    ZONE_EXPECTED,
)
from greensched_simulator.arrays.heaps import job_at, size_of
from greensched_simulator.engine.execution.running import add_part, add_room, parts_of
from greensched_simulator.engine.execution.workers import (
    all_cores,
    all_gpus,
    keep_until,
    kept_until_of,
)
from greensched_simulator.engine.holding.hold import COUNTED_SLOT, Hold
from greensched_simulator.engine.holding.slots import forget_all_segments, forget_later_segments
from greensched_simulator.engine.run import Run

_has_room = compiled(has_room)
_has_gpus = compiled(has_gpus)


@inlined
def note_room(job: int, begin_s: float, run: Run, hold: Hold) -> None:
    """Record the room that the kernel has just kept in the plan for a held job."""
    recorded, slot_s = run.recorded, run.terms.slot_s
    zone = int(hold.found[ZONE_EXPECTED, job])
    expected_s = begin_s + hold.found[EXPECTED, job] * slot_s
    recorded.planned_zone[job], recorded.kept_from_s[job] = zone, expected_s
    recorded.kept_until_s[job] = expected_s + run.estimates.runtime_s[job, zone]
    recorded.kept_cores[job] = all_cores(job, run.jobs, recorded)
    recorded.kept_gpus[job] = all_gpus(job, run.jobs, recorded)
    hold.asked[STAYS_IN, job], hold.asked[STAYS_FROM_S, job] = zone, expected_s
    hold.asked[SEEKS_ROOM, job] = hold.found[WHY, job] == NO_ROOM


@fast
def give_room_back(job: int, now_s: float, run: Run) -> None:
    """Free the room that the plan keeps for a held job; it starts now, or is planned again."""
    recorded = run.recorded
    forget_later_segments(job, run)
    if recorded.kept_cores[job] + recorded.kept_gpus[job] > 0.0:
        zone, until_s = recorded.planned_zone[job], recorded.kept_until_s[job]
        cores, gpus = recorded.kept_cores[job], recorded.kept_gpus[job]
        add_room(job, zone, recorded.kept_from_s[job], until_s, -cores, -gpus, run)
    recorded.planned_zone[job] = max(recorded.planned_zone[job], 0)
    recorded.kept_cores[job] = recorded.kept_gpus[job] = 0.0
    recorded.kept_from_s[job] = recorded.kept_until_s[job] = now_s


@fast
def has_kept_room(job: int, begin_s: float, run: Run, hold: Hold) -> bool:
    """Return whether the plan has room for a held job that starts in the slot of `begin_s`.

    Its own room is kept in the plan.
    """
    plan, recorded = run.plan, run.recorded
    zone = recorded.planned_zone[job]
    end_s = begin_s + run.estimates.runtime_s[job, zone]
    if hold.asked[STAYS_IN, job] == NO_ZONE_YET:  # planned in slots: its first run segment
        end_s = begin_s + recorded.kept_until_s[job] - recorded.kept_from_s[job]
    first, last = slots_of(begin_s, end_s, run.terms.slot_s, plan.cores.shape[1])
    last_gpus = last if recorded.kept_gpus[job] > 0.0 else first
    return bool(
        _has_room(plan.cores[zone, first:last], plan.capacity[zone], 0.0)
        and _has_room(plan.memory[zone, first:last], plan.memory_capacity[zone], 0.0)
        and _has_gpus(plan.gpus[zone, first:last_gpus], plan.gpu_capacity[zone], 0.0)
    )


@fast
def count_overdue(begin_s: float, run: Run, hold: Hold) -> None:
    """Let running jobs whose expected end has passed count in the slot that begins at `begin_s`."""
    slot = int(begin_s / run.terms.slot_s)
    if hold.counts[COUNTED_SLOT] == slot:
        return
    hold.counts[COUNTED_SLOT] = slot
    ends, recorded, end_s = run.events.ends, run.recorded, begin_s + run.terms.slot_s
    for place in range(size_of(ends)):
        job = job_at(ends, place)
        if hold.is_held[job] == 1:  # paused: it stops
            continue
        for part in range(parts_of(job, run)):
            if kept_until_of(job, part, recorded) <= begin_s:
                add_part(job, part, begin_s, end_s, 1.0, run)
                keep_until(job, part, end_s, recorded)


@fast
def plan_what_runs(begin_s: float, run: Run, hold: Hold) -> None:
    """Clear the plan from a slot on, and keep room for all running jobs."""
    plan, recorded, slot_s = run.plan, run.recorded, run.terms.slot_s
    forget_all_segments(run)
    slot = int(begin_s / slot_s)
    hold.counts[COUNTED_SLOT] = slot
    for zone in range(plan.cores.shape[0]):
        for at in range(slot, plan.cores.shape[1]):
            plan.cores[zone, at] = 0.0
        for at in range(slot, plan.gpus.shape[1]):
            plan.gpus[zone, at] = 0.0
        for at in range(slot, plan.memory.shape[1]):
            plan.memory[zone, at] = 0.0
    ends = run.events.ends
    for place in range(size_of(ends)):
        job = job_at(ends, place)
        if hold.is_held[job] == 1:
            continue
        for part in range(parts_of(job, run)):
            until_s = max(kept_until_of(job, part, recorded), begin_s + slot_s)
            keep_until(job, part, until_s, recorded)
            add_part(job, part, begin_s, until_s, 1.0, run)


@fast
def held_cores(run: Run, hold: Hold) -> float:
    """Return the cores that held jobs request together."""
    starts, cores = run.events.starts, 0.0
    for place in range(size_of(starts)):
        job = job_at(starts, place)
        if job < hold.is_held.size and hold.is_held[job] == 1:
            cores += run.recorded.kept_cores[job]
    return cores
