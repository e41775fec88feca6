"""The input of planning, and its result: a planned start."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from greensched_operator.holding.judging import MayWait
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.cluster_state import Zone
from greensched_operator.planning.outlooks import Outlooks
from greensched_operator.planning.work_power import (
    largest_node,
    pod_needs,
    speeds_for,
    work_watts,
)
from greensched_policies.planning.held_start import jitter_s
from greensched_policies.planning.outlook import SLOT_S
from greensched_policies.planning.planning import NO_ZONE, Chosen, Running
from greensched_policies.rules.catalogue import WhenPolicy


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
    known_watts: dict[tuple[float | None, int, float, float, float], list[float]] = field(
        init=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "largest_node", largest_node(self.zones))
        object.__setattr__(self, "known_speeds", {})
        object.__setattr__(self, "known_watts", {})

    def zone_named(self, place: int) -> str:
        """Return the name of a zone; "" for that of a workload that no node can take."""
        return "" if place == NO_ZONE else self.zones[place].name

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
        asks = terms.pod_power_w, work.pods, *pod_needs(work)
        found = self.known_watts.get(asks)
        if found is None:
            found = self.known_watts[asks] = work_watts(work, terms, self.zones)
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
