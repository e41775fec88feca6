"""Keeps the latest decisions and their reasons, in bounded memory."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Any

import numpy as np
import numpy.typing as npt

from greensched_core.state import Workload
from greensched_core.units import KWH_PER_MWH, kwh_from_joules
from greensched_extender.green_policies import FollowedPolicy
from greensched_extender.grid import RunOutlook, ZoneNow, render_zone
from greensched_extender.scoring import Appraisal
from greensched_extender.why import TOO_LATE
from greensched_extender.zone_outcome import PlannedZone
from greensched_policies.costs.late_runs import late_share
from greensched_policies.encoding.timing import Timing
from greensched_policies.library.node_names import NO_ROW

SingleFloats = npt.NDArray[np.float32]
_OVERHEAD_BYTES = 2048  # per decision, without its arrays
_BYTES_PER_CANDIDATE = 4 + 4 + 4 * 4 + 1
_OUTLOOK_BYTES = 512  # per outlook, without its means
_BYTES_PER_MEANS = 4 * 8  # carbon and price, over the run and over the coming day
_MOST_UNBOUND = (
    5_000  # pods scored and not yet bound, as many as a burst; others may never be bound
)
_LONGEST_UID = 253  # characters; the API server's are 36
_BYTES_PER_STATE = 512  # per zone: values, ages and the zone's name


@dataclass(slots=True, eq=False)
class Decision:
    """One answer to /prioritize; the arrays have one entry per known node offered."""

    workload: Workload
    by: FollowedPolicy
    timing: Timing  # the time left then until the deadline, and what the policy asks
    planned_zone: PlannedZone | None
    decided_at: float  # seconds since the epoch
    runtime_s: float
    left_to_run_s: float  # by the plan: less than the runtime, if the work was paused
    offered: int
    unknown: tuple[str, ...]  # some of the offered names without a row
    unknown_count: int
    policy: str  # name of the policy that answered
    bundle: str  # name of the model's bundle; "" if a rule answered
    fallback: str  # why the model was late or did not answer, or ""
    snapshot_age_s: float
    outlook: RunOutlook  # its first zone is "", for nodes without a zone
    names: list[str]  # by row
    names_bytes: int
    rows: npt.NDArray[np.int32]
    zone_of: npt.NDArray[np.int32]
    power_w: SingleFloats
    runtime_on_node_s: SingleFloats
    gpu_share: SingleFloats | None  # measured; NaN, or None for all, where it is assumed
    relative_cost: SingleFloats
    scores: npt.NDArray[np.int8]
    expected_row: int
    bound_to: str = ""
    bound_at: float | None = None  # None also if the time was not observed
    came_too_late: bool = False  # the pod was already bound, so the scores had no effect
    superseded: bool = field(default=False)  # a later request for the same pod came

    @property
    def size_bytes(self) -> int:
        """Approximate bytes of memory that only this decision holds."""
        pod = self.workload
        texts = (pod.namespace, pod.name, pod.uid, *pod.faults, *self.unknown)
        return _OVERHEAD_BYTES + _BYTES_PER_CANDIDATE * self.rows.size + sum(map(getsizeof, texts))

    @property
    def shared(self) -> dict[int, int]:
        """Memory that other decisions may hold too: bytes by object id."""
        states = self.outlook.states
        return {
            id(self.names): self.names_bytes,
            id(self.outlook): _OUTLOOK_BYTES + _BYTES_PER_MEANS * len(states),
            id(states): _BYTES_PER_STATE * len(states),
        }


@dataclass(slots=True)
class _Shared:
    """A piece of memory that several decisions hold."""

    holders: int = 0
    size_bytes: int = 0


def remember(
    appraisal: Appraisal,
    zone_of: npt.NDArray[np.int32],
    **facts: Any,
) -> Decision:
    """Return a decision that holds an appraisal in small arrays; `facts` are its other fields."""
    seen, answer = appraisal.seen, appraisal.answer
    reason = answer.reason.value if answer.reason is not None else ""
    return Decision(
        rows=appraisal.rows.astype(np.int32),
        zone_of=zone_of.take(appraisal.rows),
        power_w=seen.power_w,
        runtime_on_node_s=seen.runtime_s,
        gpu_share=None if appraisal.gpu_share is None else appraisal.gpu_share.astype(np.float32),
        relative_cost=answer.relative_cost[0],
        scores=appraisal.scores,
        policy=answer.answered_by,
        fallback=reason,
        expected_row=appraisal.best_row,
        **facts,
    )


class Decisions:
    """The latest decisions, as many as fit into `max_bytes`; 0 keeps none.

    Shared memory counts once, while any decision that holds it is kept: the state of the zones,
    and the list of a view's node names, which is copied when a node is replaced.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._shared: dict[int, _Shared] = {}  # by object id, not reused while it has holders
        self._kept: deque[Decision] = deque()
        self._latest: dict[str, Decision] = {}  # pod's uid → its latest decision
        self._unbound: dict[str, None] = {}  # uids of scored pods; kept also without decisions

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, decision: Decision) -> None:
        """Keep a decision unless it is too large, and drop the oldest ones to make room."""
        if not decision.came_too_late:
            self._expect_binding(decision.workload.uid)
        earlier = self._latest.get(decision.workload.uid)
        if earlier is not None:
            earlier.superseded = True
        size_bytes, shared = decision.size_bytes, decision.shared
        if size_bytes + sum(shared.values()) > self._max_bytes:
            return
        self._kept.append(decision)
        self._latest[decision.workload.uid] = decision
        self._count(size_bytes, shared)
        while self._bytes > self._max_bytes:
            oldest = self._kept.popleft()
            self._discount(oldest)
            if self._latest.get(oldest.workload.uid) is oldest:
                del self._latest[oldest.workload.uid]

    def _count(self, own_bytes: int, shared: Mapping[int, int]) -> None:
        self._bytes += own_bytes
        for identity, size_bytes in shared.items():
            piece = self._shared.setdefault(identity, _Shared())
            piece.holders += 1
            self._bytes += size_bytes - piece.size_bytes  # a list of names may have grown
            piece.size_bytes = size_bytes

    def _discount(self, decision: Decision) -> None:
        self._bytes -= decision.size_bytes
        for identity in decision.shared:
            piece = self._shared[identity]
            piece.holders -= 1
            if not piece.holders:
                self._bytes -= self._shared.pop(identity).size_bytes

    def _expect_binding(self, uid: str) -> None:
        if not 0 < len(uid) <= _LONGEST_UID:
            return
        self._unbound.pop(uid, None)
        self._unbound[uid] = None
        if len(self._unbound) > _MOST_UNBOUND:
            del self._unbound[next(iter(self._unbound))]

    def bound(self, uid: str, node: str, at: float) -> bool:
        """Record the node that a pod was bound to, and when, in seconds since the epoch.

        Returns whether the pod was scored here before it was bound.
        """
        decision = self._latest.get(uid)
        if decision is not None and not decision.bound_to:
            decision.bound_to, decision.bound_at = node, at
        was_scored = uid in self._unbound
        self._unbound.pop(uid, None)
        return was_scored

    def of(self, namespace: str, name: str) -> list[Decision]:
        """Return the decisions on pods of that name, the latest first."""
        return [
            decision
            for decision in reversed(self._kept)
            if decision.workload.name == name and decision.workload.namespace == namespace
        ]


def render(decision: Decision) -> dict[str, Any]:
    """Return a decision as JSON values, with the cheapest candidate first."""
    workload = decision.workload
    order = np.argsort(decision.relative_cost, kind="stable").tolist()
    expected, zones = decision.expected_row, decision.outlook.signals
    return {
        "pod": {
            "namespace": workload.namespace,
            "name": workload.name,
            "uid": workload.uid,
            "cpuCores": workload.cpu_cores,
            "memoryBytes": workload.memory_bytes,
            "gpus": workload.gpus,
            "runtimeSeconds": decision.runtime_s,
            "runtimeIsDefault": workload.runtime_s is None,
            "faults": list(workload.faults),
        },
        "decidedAt": decision.decided_at,
        "policy": decision.policy,
        "bundle": decision.bundle or None,
        "weights": decision.by.weights._asdict(),
        "weightsFrom": decision.by.source,
        "plannedZone": _planned(decision),
        **_on_time(decision),
        "fallbackReason": decision.fallback or None,
        "snapshotAgeSeconds": decision.snapshot_age_s,
        "offered": decision.offered,
        "unknownNodes": {"count": decision.unknown_count, "some": list(decision.unknown)},
        "zones": [render_zone(signal) for signal in zones if signal.zone],
        "expectedNode": None if expected == NO_ROW else decision.names[expected],
        "outcome": _outcome(decision),
        "candidates": [_candidate(decision, place, zones) for place in order],
    }


def _planned(decision: Decision) -> Mapping[str, Any] | None:
    planned = decision.planned_zone
    return None if planned is None else {"zone": planned.zone, "outcome": planned.outcome.value}


def _on_time(decision: Decision) -> Mapping[str, Any]:
    timing = decision.timing
    if math.isinf(timing.left_s):
        return {"deadline": None, "onTimeTargetShare": None}
    deadline_s = decision.decided_at + timing.left_s
    return {"deadline": deadline_s, "onTimeTargetShare": timing.on_time_target}


def _late_share(decision: Decision, runtime_on_node_s: float) -> float | None:
    """Return the share of such runs on a node that end too late; None without a deadline."""
    timing = decision.timing
    if math.isinf(timing.left_s) or runtime_on_node_s <= 0.0:
        return None
    left_on_node_s = runtime_on_node_s * decision.left_to_run_s / decision.runtime_s
    return late_share(timing.left_s, left_on_node_s, timing.runtime_error)


def _outcome(decision: Decision) -> Mapping[str, Any]:
    if decision.came_too_late:
        return {"state": TOO_LATE, "node": decision.bound_to, "boundAt": decision.bound_at}
    if decision.bound_to:
        return {"state": "bound", "node": decision.bound_to, "boundAt": decision.bound_at}
    return {"state": "superseded" if decision.superseded else "not seen bound"}


def _gpu_share(decision: Decision, place: int) -> Mapping[str, Any]:
    if not decision.workload.gpus:
        return {"gpuShare": None, "gpuShareFrom": None}
    share = math.nan if decision.gpu_share is None else float(decision.gpu_share[place])
    if math.isnan(share):
        return {"gpuShare": None, "gpuShareFrom": "assumed"}
    return {"gpuShare": share, "gpuShareFrom": "measured"}


def _candidate(decision: Decision, place: int, zones: Sequence[ZoneNow]) -> dict[str, Any]:
    signal = zones[decision.zone_of[place]]
    runtime_s = float(decision.runtime_on_node_s[place])
    energy_j = float(decision.power_w[place]) * runtime_s
    carbon, price = signal.carbon_g_per_kwh, signal.price_per_mwh
    return {
        "node": decision.names[decision.rows[place]],
        "zone": signal.zone or None,
        "score": int(decision.scores[place]),
        "relativeCost": float(decision.relative_cost[place]),
        "powerWatts": float(decision.power_w[place]),
        "runtimeSeconds": runtime_s,
        "lateShare": _late_share(decision, runtime_s),
        "energyJoules": energy_j,
        **_gpu_share(decision, place),
        "carbonGrams": None if carbon is None else kwh_from_joules(energy_j) * carbon,
        "cost": None if price is None else kwh_from_joules(energy_j) / KWH_PER_MWH * price,
        "currency": signal.currency or None,
    }
