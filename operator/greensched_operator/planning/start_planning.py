"""Plans when held work starts, by a `when` rule or model, the forecast and the plan so far.

Pure: takes the waiting work, the cluster and the outlook, and returns planned starts.
`greensched_policies.planning.planning` makes the choice, with functions that are also the
simulator's.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from greensched_core import labels
from greensched_operator.holding.holding import due_s
from greensched_operator.holding.judging import MayWait, ReleaseNow
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.outlooks import slot_begin
from greensched_operator.planning.situation import Planned, Situation, jitter_of
from greensched_operator.planning.work_power import (
    own_part,
    run_s,
    share_of_node,
)
from greensched_policies.costs.late_runs import price_of_lateness
from greensched_policies.costs.quiet_spans import may_start
from greensched_policies.costs.slot_window import MOST_IN_SLOTS
from greensched_policies.encoding.weights import CarbonLimit
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.held_start import by_worth, release_s, within_share
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.planning.planning import (
    Chosen,
    Kept,
    StartReason,
    StartRequest,
    Thresholds,
    keep_queued,
    plan_again,
)
from greensched_policies.planning.slot_planning import Interruptible, plan_slots


def plan_starts(
    waiting: Sequence[MayWait], situation: Situation
) -> tuple[list[Planned], list[ReleaseNow]]:
    """Return the planned start of each workload, and the workloads that must start now instead.

    Workloads of one gang share a start. Held work may request at most the policy's share of the
    cluster's cores: above that, workloads that save least start first.
    """
    plan, begin_s = core_plan(situation), slot_begin(situation.now_s)
    in_slots = _in_slots(waiting, plan, begin_s, situation)
    groups = _gangs([one for one in waiting if one.work.uid not in in_slots])
    spans = [_span(group, situation) for group in groups]
    requests = [
        _start_request(group, span[0], situation) for group, span in zip(groups, spans, strict=True)
    ]
    places = {zone.name: place for place, zone in enumerate(situation.zones)}
    kept = [
        _kept(group, span, situation, places) for group, span in zip(groups, spans, strict=True)
    ]
    chosen = plan_again(situation.outlooks.outlook, plan, requests, kept, begin_s)
    planned = [
        _planned(one, span, choice, situation)
        if choice is not None
        else situation.staying[one.work.uid].on(one)
        for group, span, choice in zip(groups, spans, chosen, strict=True)
        for one in group
    ]
    planned += in_slots.values()
    cluster_cores = sum(zone.cpu_cores for zone in situation.zones)
    held_cores = sum(one.waiting.work.cpu_cores for one in situation.earlier_plans)
    return _within_share(planned, cluster_cores, held_cores)


def requeued(situation: Situation) -> tuple[Planned, ...]:
    """Return the queued work with the room that it can expect now, behind what runs.

    Those released first come first. Work that no node can take any more keeps no room.
    """
    begin_s, names = slot_begin(situation.now_s), [zone.name for zone in situation.zones]
    plan = core_plan(replace(situation, queued=(), earlier_plans=()))
    requests = [_start_request([one.waiting], -math.inf, situation) for one in situation.queued]
    found = list[Planned]()
    for one, kept in zip(
        situation.queued,
        keep_queued(situation.outlooks.outlook, plan, requests, begin_s),
        strict=True,
    ):
        if kept is not None:
            chosen = one.chosen._replace(expected_s=kept.begin_s, kept_until_s=kept.end_s)
            zone = names[kept.zone]
            found.append(replace(one, chosen=chosen, kept_zone=zone, run_segments=()))
    return tuple(found)


def room_check(situation: Situation) -> Callable[[Planned], bool]:
    """Return a function that tells whether there is room for planned work that starts now.

    The earlier plans of the situation contain it. Work for which there is none gives the room of
    its plan back, because it is planned again, as is its gang. Work whose policy does not wait for
    room, or whose zone is gone, always has room.
    """
    plan, begin_s = core_plan(situation), slot_begin(situation.now_s)
    places = {zone.name: place for place, zone in enumerate(situation.zones)}
    needing_gpus = {
        _gang_of(one.waiting.work)
        for one in situation.earlier_plans
        if one.waiting.work.gang and one.waiting.work.gpus > 0.0
    }
    refused = set[tuple[str, str]]()  # gangs

    def has_room(planned: Planned) -> bool:
        place, chosen = places.get(planned.kept_zone), planned.chosen
        if place is None or not planned.waiting.policy.waits_for_room:
            return True
        first_s, last_s = (*planned.run_segments, (chosen.expected_s, chosen.kept_until_s))[0]
        until_s, work = begin_s + last_s - first_s, planned.waiting.work
        gang = _gang_of(work)
        with_gpus = work.gpus > 0.0 or gang in needing_gpus  # a gang starts as a whole, or not
        if gang not in refused and plan.has_room(place, begin_s, until_s, with_gpus=with_gpus):
            return True
        if work.gang:
            refused.add(gang)
        cores, gpus, memory_bytes = needs_of(work)
        _keep_planned(plan, place, planned, (-cores, -gpus, -memory_bytes))
        return False

    return has_room


def _gang_of(work: Work) -> tuple[str, str]:
    return work.namespace, work.gang


def core_plan(situation: Situation) -> CorePlan:
    """Return the core plan with all running and queued work and all earlier plans."""
    outlook = situation.outlooks.outlook
    capacity = np.array([zone.cpu_cores for zone in situation.zones])
    gpus = np.array([zone.gpus for zone in situation.zones], dtype=float)
    memory = np.array([zone.memory_bytes for zone in situation.zones], dtype=float)
    plan = CorePlan(
        capacity, outlook.begin_s, outlook.slot_s, outlook.slots, gpus, memory,
        busy_share=situation.busy_share,
    )  # fmt: skip
    for number, zone in enumerate(situation.zones):
        plan.merit[:, number] = zone.merit
    places = {zone.name: place for place, zone in enumerate(situation.zones)}
    for one in (*situation.queued, *situation.earlier_plans):
        place = places.get(one.kept_zone)
        if place is not None:
            _keep_planned(plan, place, one, needs_of(one.waiting.work))
    soonest_s = slot_begin(situation.now_s) + outlook.slot_s
    for run in situation.running:
        until_s = max(run.until_s, soonest_s)
        needs = run.cpu_cores, run.gpus, run.memory_bytes
        plan.keep(run.zone, situation.now_s, until_s, *needs)
    return plan


def _keep_planned(
    plan: CorePlan, place: int, one: Planned, needs: tuple[float, float, float]
) -> None:
    """Add what planned work needs in a zone for its run, or its run segments."""
    whole = ((one.chosen.expected_s, one.chosen.kept_until_s),)
    for begin_s, end_s in one.run_segments or whole:
        plan.keep(place, begin_s, end_s, *needs)


def _in_slots(
    waiting: Sequence[MayWait], plan: CorePlan, begin_s: float, situation: Situation
) -> dict[str, Planned]:
    """Plan work that may be suspended, by run segments; the earliest latest start goes first.

    `plan` then reserves the cores of each.
    """
    found: dict[str, Planned] = {}
    outlook = situation.outlooks.outlook
    asking = [one for one in waiting if one.terms.restart_s is not None and not one.work.gang]
    for one in sorted(asking, key=lambda one: one.terms.latest_start_s)[:MOST_IN_SLOTS]:
        thresholds = Thresholds(least_saving=one.policy.least_saving)
        work = interruptible(one, situation)
        answer = plan_slots(outlook, plan, work, begin_s, thresholds=thresholds)
        if answer is None:
            continue
        quiet = one.policy.quiet_hours.spans_ahead(situation.now_s)
        if not may_start(answer.run_segments[0][0], SLOT_S, work.from_s, *quiet):
            continue
        for run_segment in answer.run_segments:
            kept = (answer.chosen.kept_zone, *run_segment)
            plan.keep(*kept, *needs_of(one.work))
        planned = _planned(one, _span([one], situation), answer.chosen, situation)
        found[one.work.uid] = replace(planned, run_segments=answer.run_segments)
    return found


def interruptible(one: MayWait, situation: Situation) -> Interruptible:
    """Return the request for slots of work that may be suspended."""
    from_s, restart_s = _span([one], situation)[0], one.terms.restart_s
    request = _start_request([one], from_s, situation)
    return Interruptible(
        runtime_s=np.array(request.runtime_s),
        latest_s=request.latest_s,
        cpu_cores=request.cpu_cores,
        power_w=np.array(request.power_w),
        weights=request.weights,
        when=request.when,
        limit=request.limit,
        gpus=request.gpus,
        memory_bytes=request.memory_bytes,
        restart_s=0.0 if restart_s is None else restart_s,
        most_restarts=one.terms.most_restarts,
        from_s=request.from_s,
        kept_start_s=request.kept_start_s,
        waits_for_room=request.waits_for_room,
    )


def _gangs(waiting: Sequence[MayWait]) -> list[list[MayWait]]:
    groups: dict[tuple[str, str], list[MayWait]] = {}
    for one in waiting:
        gang = f"gang {one.work.gang}" if one.work.gang else one.work.uid
        groups.setdefault((one.work.namespace, gang), []).append(one)
    return list(groups.values())


def _start_request(group: Sequence[MayWait], from_s: float, situation: Situation) -> StartRequest:
    each = [_own_request(one, situation) for one in group]
    request = each[0] if len(each) == 1 else _together(each)
    quiet = group[0].policy.quiet_hours
    if not quiet.windows and from_s <= situation.now_s:
        return request
    return request._replace(from_s=from_s, quiet=quiet.spans_ahead(situation.now_s))


def _own_request(one: MayWait, situation: Situation) -> StartRequest:
    """Return the request of a workload without its gang."""
    work, terms, policy = one.work, one.terms, one.policy
    runs_s = [run_s(terms, speed) for speed in situation.speeds(work)]
    if allowed := situation.zones_for(one):
        runs_s = [
            run if zone.name in allowed else math.inf
            for zone, run in zip(situation.zones, runs_s, strict=True)
        ]
    kept_s, at_arrival_g = work.marks.planned_start_s, work.marks.at_arrival_g
    most_g = math.inf if at_arrival_g is None else at_arrival_g
    return StartRequest(
        runtime_s=runs_s,
        latest_s=terms.latest_start_s,
        cpu_cores=work.cpu_cores,
        power_w=situation.watts(one),
        weights=policy.weights,
        when=situation.when_for(one),
        limit=CarbonLimit(policy.carbon_price_per_g, most_g),
        thresholds=Thresholds(least_saving=policy.least_saving),
        gpus=work.gpus,
        kept_start_s=None if kept_s is None else kept_s - jitter_of(one, situation.jitter_s),
        waits_for_room=policy.waits_for_room,
        memory_bytes=work.memory_bytes,
        spare_s=terms.spare_s,
        node_share=share_of_node(work, situation.largest_node),
        due_s=due_s(terms, policy),
        runtime_error=terms.runtime_error,
        late_price=price_of_lateness(policy.on_time_target),
    )


def _together(each: Sequence[StartRequest]) -> StartRequest:
    """Return the request of a gang: it runs as long as its longest member, where all can run.

    Grams on arrival are known if all members know theirs.
    """
    most_g = sum(one.limit.at_arrival_g for one in each)
    return each[0]._replace(
        runtime_s=[max(in_zone) for in_zone in zip(*(one.runtime_s for one in each), strict=True)],
        latest_s=min(one.latest_s for one in each),
        cpu_cores=sum(one.cpu_cores for one in each),
        power_w=[sum(in_zone) for in_zone in zip(*(one.power_w for one in each), strict=True)],
        limit=each[0].limit._replace(at_arrival_g=most_g),
        gpus=sum(one.gpus for one in each),
        memory_bytes=sum(one.memory_bytes for one in each),
        spare_s=max(one.spare_s or 0.0 for one in each),
        node_share=max(one.node_share for one in each),
        due_s=min(one.due_s for one in each),
        runtime_error=max(one.runtime_error for one in each),
        late_price=max(one.late_price for one in each),
    )


def _span(group: Sequence[MayWait], situation: Situation) -> tuple[float, float]:
    """Return the earliest and the latest start of a group."""
    earliest_s, latest_s = -math.inf, math.inf
    for one in group:
        earliest_s = max(earliest_s, one.terms.start_from_s, situation.opens_s(one))
        latest_s = min(latest_s, one.terms.latest_start_s)
    return earliest_s, latest_s


def _kept(
    group: Sequence[MayWait],
    span: tuple[float, float],
    situation: Situation,
    places: Mapping[str, int],
) -> Kept | None:
    """Return the room of a group's earlier plan, if that may stay; None: it is planned anew."""
    plans = [situation.staying.get(one.work.uid) for one in group]
    first, after_s, latest_s = plans[0], max(situation.now_s, span[0]), span[1]
    if first is None or first.run_segments or first.kept_zone not in places:
        return None
    for plan in plans:
        if plan is None or not after_s < plan.start_s <= latest_s:
            return None
    chosen = first.chosen
    seeks_room = chosen.why is StartReason.NO_ROOM
    return Kept(
        places[first.kept_zone],
        chosen.expected_s,
        chosen.kept_until_s,
        seeks_room,
        situation.may_move,
    )


def needs_of(work: Work) -> tuple[float, float, float]:
    """Return the cores, GPUs and memory that a workload requests."""
    return work.cpu_cores, work.gpus, work.memory_bytes


def _planned(
    one: MayWait, span: tuple[float, float], chosen: Chosen, situation: Situation
) -> Planned:
    now_s, (earliest_s, latest_s) = situation.now_s, span
    before_s, delay_s = one.work.marks.planned_start_s, jitter_of(one, situation.jitter_s)
    kept_s = math.nan if before_s is None else before_s
    start_s = release_s(chosen.start_s, kept_s, delay_s, now_s, SLOT_S)
    start_s = max(start_s, earliest_s)
    start_s = max(start_s, one.policy.quiet_hours.next_allowed(max(start_s, now_s)))
    zone, kept_zone = (situation.zone_named(each) for each in (chosen.run.zone, chosen.kept_zone))
    start_s = min(start_s, latest_s)
    is_now, first_g = start_s <= now_s, _first_g(one, chosen, situation)
    return Planned(one, start_s, chosen, zone, kept_zone, is_now, first_g)


def _first_g(one: MayWait, chosen: Chosen, situation: Situation) -> float | None:
    """Return the grams of a run on arrival: as written, else those of a run now."""
    written = one.work.marks.at_arrival_g
    if written is not None:
        return written
    return own_part(chosen.run_now, one.work, one.terms, situation.zones).carbon_g


def _within_share(
    planned: Sequence[Planned], cluster_cores: float, held_cores: float
) -> tuple[list[Planned], list[ReleaseNow]]:
    """Return work that may be held in addition to `held_cores`, and the rest, which starts now.

    Both are in the order of `by_worth`.
    """
    is_new = [labels.PLANNED_START not in one.waiting.work.annotations for one in planned]
    shares = [one.waiting.policy.max_held_share for one in planned]
    most_cores = [share * cluster_cores if cluster_cores else math.inf for share in shares]
    order = by_worth(
        np.array(is_new, np.int64),
        np.array([one.chosen.saving for one in planned], float),
        np.array([one.waiting.terms.latest_start_s for one in planned], float),
    )
    may_be_held = within_share(
        order,
        np.array([one.waiting.work.cpu_cores for one in planned], float),
        np.array(most_cores, float),
        np.array([one.is_now for one in planned], np.int64),
        held_cores,
    )
    held = [planned[place] for place in order if may_be_held[place]]
    return held, [
        _over_share(planned[place], cluster_cores) for place in order if not may_be_held[place]
    ]


def _over_share(one: Planned, cluster_cores: float) -> ReleaseNow:
    percent = 100.0 * one.waiting.policy.max_held_share
    text = (
        f"held work would request more than {percent:g} % of the cluster's {cluster_cores:g} cores"
    )
    return ReleaseNow(one.waiting.work, ReleaseReason.HELD_SHARE, text)
