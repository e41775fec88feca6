"""Answers the verbs: bytes in, bytes out; every request gets an answer.

The work up to the reply is synchronous and uses one frozen view.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import structlog

from greensched_core.clock import Clock
from greensched_core.declarations import Declarations, Declared, PlannedRun, read_planned_run
from greensched_core.errors import BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.objects import PodObject, RequestedAmounts, workload_of
from greensched_core.state import Workload
from greensched_extender import protocol
from greensched_extender.binding import bind
from greensched_extender.decisions import Decisions, remember
from greensched_extender.filtering import one_of_the_best, over_budget
from greensched_extender.green_policies import FollowedPolicy, GreenPolicies
from greensched_extender.grid import OutlookCache, RunOutlook
from greensched_extender.metrics import RULE_FAILED, ExtenderMetrics, Fallback, RequestOutcome
from greensched_extender.offered import Offered
from greensched_extender.planned_zone import place_due, prefer_planned
from greensched_extender.policy_choice import Answering, PolicyChoice
from greensched_extender.scoring import Appraisal, ScoringAssumptions, appraise, reply
from greensched_extender.snapshot import Snapshot
from greensched_extender.view import View
from greensched_extender.zone_outcome import PlannedZone, ZoneOutcome
from greensched_policies.encoding.timing import (
    USUAL_ON_TIME_TARGET,
    USUAL_RUNTIME_ERROR,
    Timing,
)
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.library.node_names import NO_ROW, Rows
from greensched_policies.library.seeing_nodes import PodDecision

log = structlog.get_logger()

_SOME_UNKNOWN = 5  # names of unknown nodes that a decision keeps
_LONGEST_NAME = 253  # characters of a Kubernetes name (RFC 1123 subdomain)
_NO_PLAN = PlannedRun("", math.inf, 0.0)


@dataclass(frozen=True, slots=True)
class ExtenderReply:
    """Status and body of a reply, and how it came about."""

    status: int
    body: bytes
    outcome: RequestOutcome


@dataclass(frozen=True)
class AnswerSettings:
    """The settings for answering requests."""

    scheduler_names: frozenset[str]
    assumptions: ScoringAssumptions
    filter_enabled: bool
    snapshot_max_age_s: float


@dataclass(frozen=True)
class Knowledge:
    """Known state of the cluster: nodes and pods, the grid, what owners declare, policies."""

    snapshot: Snapshot
    snapshot_age_s: Callable[[], float | None]  # None: the first lists are not done
    grid: OutlookCache
    declarations: Declarations
    policies: GreenPolicies


class _Asked(NamedTuple):
    """A pod to be scored, and what its decision rests on besides the nodes."""

    workload: Workload
    by: FollowedPolicy
    now: float
    runtime_s: float
    outlook: RunOutlook
    snapshot_age_s: float
    planned: PlannedRun | None
    timing: Timing
    answering: Answering


class Extender:
    """Scores, filters and binds pods that opted in; all others pass in constant time."""

    def __init__(
        self,
        settings: AnswerSettings,
        known: Knowledge,
        *,
        choice: PolicyChoice,
        decisions: Decisions,
        metrics: ExtenderMetrics,
        clock: Clock,
        binder: ApiClient | None,
    ) -> None:
        self._settings = settings
        self._snapshot = known.snapshot
        self._snapshot_age_s = known.snapshot_age_s
        self._grid = known.grid
        self._declarations = known.declarations
        self._policies = known.policies
        self._choice = choice
        self._decisions = decisions
        self._metrics = metrics
        self._clock = clock
        self._binder = binder

    def prioritize(self, body: bytes) -> ExtenderReply:
        """Return a score 0..10 for each node offered; `[]`, no preference, without the opt-in."""
        try:
            args = protocol.read_args(body)
            pod = args.Pod or PodObject()
            if pod.spec.schedulerName not in self._settings.scheduler_names:
                return ExtenderReply(200, b"[]", RequestOutcome.NOT_OPTED_IN)
            with np.errstate(all="ignore"):  # extreme numbers are scored without warnings
                return self._prioritize(pod, Offered(args))
        except BadInput as fault:
            return _bad_request(fault)
        except Exception:  # whatever failed, the pod must be placed
            log.exception("prioritize failed", pod=pod.metadata.name)
            self._metrics.fallback(Fallback.EXCEPTION)
            return self._no_preference(args)

    def filter(self, body: bytes) -> ExtenderReply:
        """Return the nodes that pass; only a power budget refuses one."""
        try:
            args = protocol.read_args(body)
            pod = args.Pod or PodObject()
            if pod.spec.schedulerName not in self._settings.scheduler_names:
                return ExtenderReply(200, protocol.all_pass(args), RequestOutcome.NOT_OPTED_IN)
            if not self._settings.filter_enabled:
                return ExtenderReply(200, protocol.all_pass(args), RequestOutcome.DISABLED)
            names = protocol.read_names(args)
        except BadInput as fault:
            return _bad_request(fault)
        try:
            with np.errstate(all="ignore"):  # extreme numbers are scored without warnings
                return self._filter(args, pod, names)
        except Exception:  # whatever failed, the pod must be placed
            log.exception("filter failed", pod=pod.metadata.name, nodes=len(names))
            self._metrics.fallback(Fallback.EXCEPTION)
            return ExtenderReply(200, protocol.all_pass(args), RequestOutcome.FAILED)

    async def bind(self, body: bytes) -> ExtenderReply:
        """Bind a pod to a node; report an error in the body, as kube-scheduler expects."""
        if self._binder is None:
            message = "bind is off: set GREENSCHED_EXTENDER_BIND_ENABLED=true or remove bindVerb"
            return ExtenderReply(404, protocol.error(message), RequestOutcome.DISABLED)
        try:
            args = protocol.read_binding(body)
        except BadInput as fault:
            return _bad_request(fault)
        fault_text = await bind(self._binder, args)
        outcome = RequestOutcome.REFUSED if fault_text else RequestOutcome.OK
        return ExtenderReply(200, protocol.error(fault_text), outcome)

    def _no_preference(self, args: protocol.ExtenderArgs) -> ExtenderReply:
        try:
            return ExtenderReply(
                200, protocol.equal_scores(Offered(args).names), RequestOutcome.FAILED
            )
        except BadInput as fault:
            return _bad_request(fault)

    def _prioritize(self, pod: PodObject, offered: Offered) -> ExtenderReply:
        age_s = self._fresh_age_s()
        if age_s is None:
            return ExtenderReply(
                200, protocol.equal_scores(offered.names), RequestOutcome.ABSTAINED
            )
        declared = self._declarations.of(pod)
        workload = self._read(pod, declared)
        self._snapshot.withdraw(workload.uid)
        view = self._snapshot.view()
        rows, missing = offered.rows(view.names)
        self._metrics.candidates.observe(rows.size)
        known, unknown = rows, list[str]()
        if missing:
            known = rows[rows != NO_ROW]
            unknown = [offered.names[place] for place in np.flatnonzero(rows == NO_ROW)]
            self._count_unknown(view, unknown)
        if known.size == 0:
            self._metrics.fallback(Fallback.NO_CANDIDATE)
            return ExtenderReply(
                200, protocol.equal_scores(offered.names), RequestOutcome.ABSTAINED
            )
        asked = self._asked(workload, declared, view, age_s)
        appraisal, planned_zone = self._prefer(asked, view, self._appraise(asked, view, known))
        if self._settings.filter_enabled:
            appraisal = one_of_the_best(view, appraisal, workload.uid)
        self._snapshot.expect(workload.uid, appraisal.best_row, _amounts(workload))
        self._remember(asked, unknown, view, appraisal, planned_zone)
        body = reply(appraisal, view.names.entries, unknown)
        return ExtenderReply(200, body, RequestOutcome.OK)

    def _asked(self, workload: Workload, declared: Declared, view: View, age_s: float) -> _Asked:
        now, planned = self._clock.now(), self._planned(declared.decision)
        if planned is not None and workload.runtime_s is None:
            workload = replace(workload, runtime_s=planned.runtime_s)
        runtime_s = self._settings.assumptions.runtime_s(workload)
        outlook = self._grid.outlook(view.facts.zones, now, runtime_s)
        chosen = self._policies.of(workload.namespace, declared.policy)
        answering = self._choice.answering(chosen.by.bundle)
        for fallback in (chosen.fallback, answering.fallback):
            if fallback is not None:
                self._metrics.fallback(fallback)
        timing = _timing(planned or _NO_PLAN, now)
        return _Asked(
            workload, chosen.by, now, runtime_s, outlook, age_s, planned, timing, answering
        )

    def _appraise(self, asked: _Asked, view: View, rows: Rows) -> Appraisal:
        appraisal = appraise(
            view,
            rows,
            asked.workload,
            asked.outlook.means,
            self._settings.assumptions,
            asked.answering.guard,
            _decision(asked, view),
        )
        if appraisal.seen.lack_carbon:
            self._metrics.fallback(Fallback.NO_CARBON)
        if appraisal.seen.lack_price:
            self._metrics.fallback(Fallback.NO_PRICE)
        if appraisal.answer.answered_by == "none":
            self._metrics.guard_fallbacks.labels(RULE_FAILED).inc()
        return appraisal

    def _planned(self, decision: str | None) -> PlannedRun | None:
        try:
            return None if decision is None else read_planned_run(decision)
        except BadInput as fault:
            self._metrics.planned_zone(ZoneOutcome.UNREADABLE)
            log.debug("a planned run cannot be read", reason=str(fault))
            return None

    def _prefer(
        self, asked: _Asked, view: View, appraisal: Appraisal
    ) -> tuple[Appraisal, PlannedZone | None]:
        planned = asked.planned
        if planned is None:
            return appraisal, None
        preferred, outcome = prefer_planned(
            view, appraisal, planned, asked.outlook, asked.by.weights, asked.now
        )
        self._metrics.planned_zone(outcome)
        return preferred, PlannedZone(planned.zone, outcome)

    def _remember(
        self,
        asked: _Asked,
        unknown: list[str],
        view: View,
        appraisal: Appraisal,
        planned_zone: PlannedZone | None,
    ) -> None:
        bound_to = self._snapshot.node_of(asked.workload.uid)
        self._decisions.add(
            remember(
                appraisal,
                view.facts.zone_of,
                workload=asked.workload,
                by=asked.by,
                timing=asked.timing,
                planned_zone=planned_zone,
                decided_at=asked.now,
                runtime_s=asked.runtime_s,
                left_to_run_s=asked.planned.runtime_s if asked.planned else asked.runtime_s,
                offered=appraisal.rows.size + len(unknown),
                unknown=tuple(name[:_LONGEST_NAME] for name in unknown[:_SOME_UNKNOWN]),
                unknown_count=len(unknown),
                snapshot_age_s=asked.snapshot_age_s,
                outlook=asked.outlook,
                names=view.names.by_row,
                names_bytes=view.names.by_row_bytes,
                bundle=asked.answering.bundle if appraisal.answer.answered_by == ONNX else "",
                bound_to=bound_to,
                came_too_late=bool(bound_to),
            )
        )

    def _fresh_age_s(self) -> float | None:
        """Return the snapshot's age; count and return None when it is missing or too old."""
        age_s = self._snapshot_age_s()
        if age_s is None or age_s > self._settings.snapshot_max_age_s:
            self._metrics.fallback(Fallback.NOT_SYNCED if age_s is None else Fallback.STALE)
            return None
        return age_s

    def _filter(
        self, args: protocol.ExtenderArgs, pod: PodObject, names: list[str]
    ) -> ExtenderReply:
        if self._fresh_age_s() is None:
            return ExtenderReply(200, protocol.all_pass(args), RequestOutcome.ABSTAINED)
        workload = self._read(pod, self._declarations.of(pod))
        self._snapshot.withdraw(workload.uid)
        view = self._snapshot.view()
        refused = over_budget(view, names, workload, self._settings.assumptions)
        passed = [name for name in names if name not in refused] if refused else names
        if len(passed) == 1:  # no scores will be asked for, so the pod is counted here
            row = view.names.row_of.get(passed[0], NO_ROW)
            self._snapshot.expect(workload.uid, row, _amounts(workload))
        if not refused:
            return ExtenderReply(200, protocol.all_pass(args), RequestOutcome.OK)
        self._metrics.refused_nodes.inc(len(refused))
        return ExtenderReply(
            200, protocol.some_pass(args, names, passed, refused), RequestOutcome.OK
        )

    def _read(self, pod: PodObject, declared: Declared) -> Workload:
        workload = workload_of(pod, declared.runtime)
        if workload.faults:
            self._metrics.fallback(Fallback.UNREADABLE_POD)
            log.debug("pod has faults", pod=f"{workload.namespace}/{workload.name}",
                     faults=workload.faults)  # fmt: skip
        return workload

    def _count_unknown(self, view: View, unknown: list[str]) -> None:
        unreadable = sum(name in view.names.unreadable for name in unknown)
        if unreadable:
            self._metrics.fallback(Fallback.UNREADABLE_NODE, unreadable)
        self._metrics.fallback(Fallback.UNKNOWN_NODE, len(unknown) - unreadable)


def _timing(plan: PlannedRun, now: float) -> Timing:
    """Return what is known of a pod's time, with what is usual where nobody says."""
    error, target = plan.runtime_error, plan.on_time_target
    return Timing(
        now,
        plan.deadline_s - now,
        USUAL_RUNTIME_ERROR if error is None else error,
        USUAL_ON_TIME_TARGET if target is None else target,
    )


def _decision(asked: _Asked, view: View) -> PodDecision:
    place = place_due(asked.planned or _NO_PLAN, view.facts.zones, asked.now)
    return PodDecision(asked.by.weights, asked.timing, place)


def _amounts(workload: Workload) -> RequestedAmounts:
    return workload.cpu_cores, workload.memory_bytes, workload.gpus


def _bad_request(fault: BadInput) -> ExtenderReply:
    return ExtenderReply(400, protocol.error(str(fault)), RequestOutcome.BAD_REQUEST)
