"""Plans when held work starts, by a `when` rule or model, the forecast and the plan so far.

Pure: takes the waiting work, the cluster and the outlook, and returns planned starts.
`greensched_policies.planning.planning` makes the choice, with functions that are also the
simulator's.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from greensched_core import labels
from greensched_operator.holding.judging import MayWait, ReleaseNow
from greensched_operator.objects.release_patch import ReleaseReason
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.outlooks import Outlooks, slot_begin
from greensched_operator.planning.work_power import (
    largest_node,
    own_part,
    pod_needs,
    run_s,
    share_of_node,
    speeds_for,
    work_power_w,
)
from greensched_policies.encoding.weights import CarbonLimit
from greensched_policies.planning.core_plan import CorePlan
from greensched_policies.planning.held_start import by_worth, jitter_s, release_s, within_share
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.planning.planning import (
    Chosen,
    Kept,
    Running,
    StartReason,
    StartRequest,
    Thresholds,
    keep_queued,
    plan_again,
)
from greensched_policies.planning.slot_planning import Interruptible, plan_slots
from greensched_policies.rules.catalogue import WhenPolicy

_MOST_IN_SLOTS = 1000  # 1 to 2 ms each; the remaining ones are planned without a pause


@dataclass(frozen=True, slots=True)
class Situation:
    """The input of planning, apart from the work to plan."""

    now_s: float
    zones: tuple[Zone, ...]  # in the order of the outlook's zones
    outlooks: Outlooks
    running: tuple[Running, ...]
    earlier_plans: tuple["Planned", ...]  # their cores stay reserved
    zones_for: Callable[[MayWait], frozenset[str]]  # zones with a node that it may run on
    when_for: Callable[[MayWait], WhenPolicy]
    opens_s: Callable[[MayWait], float]  # the earliest start that its namespace's budget allows
    jitter_s: float
    busy_share: float = 0.0  # of the cluster's cores, in the mean over about the last day
    queued: tuple["Planned", ...] = ()  # released, but without a node; their room stays reserved
    # Earlier plans by uid, which stay where there is still room; other work is planned anew.
    staying: Mapping[str, "Planned"] = field(default_factory=dict)
    may_move: bool = False  # earlier plans keep their room, but better starts are chosen
    largest_node: tuple[float, float] = field(init=False)  # the most cores and memory of any
    # In each zone, for the needs asked for so far: speeds of a pod, and watts of a workload.
    known_speeds: dict[tuple[float, float, float], list[float]] = field(init=False)
    known_watts: dict[tuple[float | None, int, float, float], list[float]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest_node", largest_node(self.zones))
        object.__setattr__(self, "known_speeds", {})
        object.__setattr__(self, "known_watts", {})

    def speeds(self, work: Work) -> list[float]:
        """Return the speed of a workload's mean run in each zone, 0 where no node can take it."""
        needs = pod_needs(work)
        found = self.known_speeds.get(needs)
        if found is None:
            found = self.known_speeds[needs] = speeds_for(needs, self.zones)
        return found

    def watts(self, one: MayWait) -> list[float]:
        """Return the watts that a workload adds in each zone."""
        work, terms = one.work, one.terms
        asks = terms.pod_power_w, work.pods, work.cpu_cores, work.gpus
        found = self.known_watts.get(asks)
        if found is None:
            found = [work_power_w(work, terms, zone) for zone in self.zones]
            self.known_watts[asks] = found
        return found


@dataclass(frozen=True, slots=True)
class Planned:
    """The planned start of one held workload, and the choice behind it."""

    waiting: MayWait
    start_s: float  # with jitter; never after the latest start
    chosen: Chosen
    zone: str  # the best zone for that start
    kept_zone: str  # where the plan keeps its room: if there is room only later, maybe another
    is_now: bool  # the start is not in the future
    at_arrival_g: float | None = None  # of a run on arrival, by the first plan's forecast
    run_segments: tuple[tuple[float, float], ...] = ()  # only of work that may be suspended

    def on(self, waiting: MayWait) -> "Planned":
        """Return the same plan for a newer state of the workload."""
        return replace(self, waiting=waiting)


def jitter_of(waiting: MayWait, most_s: float) -> float:
    """Return the delay, in seconds, that spreads starts planned for the same moment.

    It is the same for all work of a gang.
    """
    work = waiting.work
    return jitter_s(f"{work.namespace}/{work.gang}" if work.gang else work.uid, most_s, SLOT_S)


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
    requests = [_start_request(group, situation) for group in groups]
    places = {zone.name: place for place, zone in enumerate(situation.zones)}
    kept = [_kept(group, situation, places) for group in groups]
    chosen = plan_again(situation.outlooks.outlook, plan, requests, kept, begin_s)
    planned = [
        _planned(one, group, choice, situation)
        if choice is not None
        else situation.staying[one.work.uid].on(one)
        for group, choice in zip(groups, chosen, strict=True)
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
    requests = [_start_request([one.waiting], situation) for one in situation.queued]
    found = list[Planned]()
    for one, kept in zip(
        situation.queued,
        keep_queued(situation.outlooks.outlook, plan, requests, begin_s),
        strict=True,
    ):
        if kept is not None:
            chosen = replace(one.chosen, expected_s=kept.begin_s, kept_until_s=kept.end_s)
            zone = names[kept.zone]
            found.append(replace(one, chosen=chosen, kept_zone=zone, run_segments=()))
    return tuple(found)


def room_check(situation: Situation) -> Callable[[Planned], bool]:
    """Return a function that tells whether there is room for planned work that starts now.

    The earlier plans of the situation contain it. Work whose policy does not wait for room, or
    whose zone is gone, always has room.
    """
    plan, begin_s = core_plan(situation), slot_begin(situation.now_s)
    places = {zone.name: place for place, zone in enumerate(situation.zones)}

    def has_room(planned: Planned) -> bool:
        place, chosen = places.get(planned.kept_zone), planned.chosen
        if place is None or not planned.waiting.policy.waits_for_room:
            return True
        first_s, last_s = (*planned.run_segments, (chosen.expected_s, chosen.kept_until_s))[0]
        until_s = begin_s + last_s - first_s
        return plan.has_room(place, begin_s, until_s, with_gpus=planned.waiting.work.gpus > 0.0)

    return has_room


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
    places = {zone.name: place for place, zone in enumerate(situation.zones)}
    for one in (*situation.queued, *situation.earlier_plans):
        place = places.get(one.kept_zone)
        if place is not None:
            chosen, work = one.chosen, one.waiting.work
            whole = ((chosen.expected_s, chosen.kept_until_s),)
            for begin_s, end_s in one.run_segments or whole:
                plan.keep(place, begin_s, end_s, *needs_of(work))
    soonest_s = slot_begin(situation.now_s) + outlook.slot_s
    for run in situation.running:
        until_s = max(run.until_s, soonest_s)
        needs = run.cpu_cores, run.gpus, run.memory_bytes
        plan.keep(run.zone, situation.now_s, until_s, *needs)
    return plan


def _in_slots(
    waiting: Sequence[MayWait], plan: CorePlan, begin_s: float, situation: Situation
) -> dict[str, Planned]:
    """Plan work that may be suspended, by run segments; the earliest latest start goes first.

    `plan` then reserves the cores of each.
    """
    found: dict[str, Planned] = {}
    outlook = situation.outlooks.outlook
    asking = [one for one in waiting if one.terms.restart_s is not None and not one.work.gang]
    for one in sorted(asking, key=lambda one: one.terms.latest_start_s)[:_MOST_IN_SLOTS]:
        thresholds = Thresholds(least_saving=one.policy.least_saving)
        work = interruptible(one, situation)
        answer = plan_slots(outlook, plan, work, begin_s, thresholds=thresholds)
        if answer is None:
            continue
        for run_segment in answer.run_segments:
            kept = (answer.chosen.kept_zone, *run_segment)
            plan.keep(*kept, *needs_of(one.work))
        planned = _planned(one, [one], answer.chosen, situation)
        found[one.work.uid] = replace(planned, run_segments=answer.run_segments)
    return found


def interruptible(one: MayWait, situation: Situation) -> Interruptible:
    """Return the request for slots of work that may be suspended."""
    request, restart_s = _start_request([one], situation), one.terms.restart_s
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
        from_s=one.terms.start_from_s,
        kept_start_s=request.kept_start_s,
    )


def _gangs(waiting: Sequence[MayWait]) -> list[list[MayWait]]:
    groups: dict[tuple[str, str], list[MayWait]] = {}
    for one in waiting:
        gang = f"gang {one.work.gang}" if one.work.gang else one.work.uid
        groups.setdefault((one.work.namespace, gang), []).append(one)
    return list(groups.values())


def _start_request(group: Sequence[MayWait], situation: Situation) -> StartRequest:
    first = group[0]
    runs_s, allowed = _runs_s(group, situation), situation.zones_for(first)
    if allowed:
        runs_s = [
            run if zone.name in allowed else math.inf
            for zone, run in zip(situation.zones, runs_s, strict=True)
        ]
    kept = first.work.marks.planned_start_s
    return StartRequest(
        runtime_s=runs_s,
        latest_s=min(one.terms.latest_start_s for one in group),
        cpu_cores=sum(one.work.cpu_cores for one in group),
        power_w=_watts(group, situation),
        weights=first.policy.weights,
        when=situation.when_for(first),
        limit=CarbonLimit(first.policy.carbon_price_per_g, _at_arrival_g(group)),
        thresholds=Thresholds(least_saving=first.policy.least_saving),
        gpus=sum(one.work.gpus for one in group),
        kept_start_s=None if kept is None else kept - jitter_of(first, situation.jitter_s),
        waits_for_room=first.policy.waits_for_room,
        memory_bytes=sum(one.work.memory_bytes for one in group),
        spare_s=max(one.terms.spare_s for one in group),
        node_share=max(share_of_node(one.work, situation.largest_node) for one in group),
    )


def _kept(group: Sequence[MayWait], situation: Situation, places: Mapping[str, int]) -> Kept | None:
    """Return the room of a group's earlier plan, if that may stay; None: it is planned anew."""
    plans = [situation.staying.get(one.work.uid) for one in group]
    first = plans[0]
    if first is None or first.run_segments or first.kept_zone not in places:
        return None
    for plan, one in zip(plans, group, strict=True):
        opens_s = max(one.terms.start_from_s, situation.opens_s(one))
        if plan is None or not (
            max(situation.now_s, opens_s) < plan.start_s <= one.terms.latest_start_s
        ):
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


def _runs_s(group: Sequence[MayWait], situation: Situation) -> list[float]:
    """Return the longest runtime in a group in each zone; infinity if a member cannot run there."""
    each = [[run_s(one.terms, speed) for speed in situation.speeds(one.work)] for one in group]
    return each[0] if len(each) == 1 else [max(in_zone) for in_zone in zip(*each, strict=True)]


def _watts(group: Sequence[MayWait], situation: Situation) -> list[float]:
    """Return the watts that a group adds in each zone."""
    each = [situation.watts(one) for one in group]
    return each[0] if len(each) == 1 else [sum(in_zone) for in_zone in zip(*each, strict=True)]


def _at_arrival_g(group: Sequence[MayWait]) -> float:
    """Return the grams of a group that had started on arrival; infinity if that is not known."""
    grams = [one.work.marks.at_arrival_g for one in group]
    return sum(each for each in grams if each is not None) if None not in grams else math.inf


def _planned(
    one: MayWait, group: Sequence[MayWait], chosen: Chosen, situation: Situation
) -> Planned:
    now_s, latest_s = situation.now_s, min(each.terms.latest_start_s for each in group)
    before_s, delay_s = one.work.marks.planned_start_s, jitter_of(one, situation.jitter_s)
    kept_s = math.nan if before_s is None else before_s
    start_s = release_s(chosen.start_s, kept_s, delay_s, now_s, SLOT_S)
    start_s = max(start_s, max(each.terms.start_from_s for each in group))
    start_s = max(start_s, max(situation.opens_s(each) for each in group))
    start_s = max(start_s, one.policy.quiet_hours.next_allowed(max(start_s, now_s)) or start_s)
    names = [*(zone.name for zone in situation.zones), ""]  # the last is NO_ZONE's
    zone, kept_zone = names[chosen.run.zone], names[chosen.kept_zone]
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
    share = one.waiting.policy.max_held_share
    text = f"held work would request more than {share:.0%} of the cluster's {cluster_cores:g} cores"
    return ReleaseNow(one.waiting.work, ReleaseReason.HELD_SHARE, text)
