"""The webhook's decision, pure: takes a new workload, returns an AdmissionReview, held or not.

Wire format: admission.k8s.io/v1 (kubernetes.io/docs/reference/access-authn-authz/
extensible-admission-controllers). A patch is RFC 6902 JSON, in base64.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import msgspec

from greensched_core import labels
from greensched_core.errors import BadInput
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.holding import HoldTerms, NotHeld, Unheld, hold_terms, not_ours
from greensched_operator.holding.judging import HoldRules, hold_request_at
from greensched_operator.objects.green_policy import Mode
from greensched_operator.objects.queue_gate import (
    GATED_BY,
    KUEUE_QUEUE,
    queue_gates,
    with_ours,
    without_ours,
)
from greensched_operator.objects.release_patch import annotation_path
from greensched_operator.objects.workloads import (
    GatedPod,
    JobObject,
    Meta,
    SchedulingGate,
    Work,
    WorkKind,
    decode_object,
    work_of,
)

_MOST_WARNING = 256  # characters; kube-apiserver cuts longer ones (webhook docs, "warnings")
_UNRELEASABLE = (
    "not held: nothing could start it again; "
    "neither the controller's leader nor the releaser has given a sign of life"
)
_ASKS = (labels.DEADLINE, labels.MAX_DELAY, labels.WINDOW, labels.CHECKPOINTABLE)


class _Kind(msgspec.Struct):
    kind: str = ""


class AdmissionRequest(msgspec.Struct):
    """The request of an AdmissionReview; the object stays undecoded."""

    uid: str
    kind: _Kind
    operation: str = ""
    namespace: str = ""
    object: msgspec.Raw = msgspec.field(default_factory=lambda: msgspec.Raw(b"null"))


class AdmissionReview(msgspec.Struct):
    """The body that the API server sends."""

    request: AdmissionRequest


@dataclass(frozen=True, slots=True)
class ReviewSurroundings:
    """The input of a decision, apart from the workload."""

    scheduler_names: frozenset[str]
    rules: HoldRules
    kueue_gated_by: bool = False  # this cluster's Kueue supports the annotation
    is_releasable: bool = True  # a leader or releaser is alive, and would start held work


class ReviewOutcome(StrEnum):
    """How a review ended, if not with a reason of `Unheld`; each is a label value of a counter."""

    HELD = "held"
    SHADOW = "shadow"  # it would be held in mode enforce
    IGNORED = "ignored"  # nothing to decide: of another scheduler, or already started
    NO_OPT_IN = "no-opt-in"  # our annotations, without our scheduler's name
    UNRELEASABLE = "unreleasable"  # nobody could start it again
    UNREADABLE = "unreadable"  # the workload
    FAILED = "failed"  # an internal error; it was admitted unchanged
    BAD_REQUEST = "bad-request"  # 400 or 413: no review, or too large
    CROWDED_OUT = "crowded-out"  # 503: too many bytes at once


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: always admitted, sometimes patched."""

    outcome: ReviewOutcome | Unheld
    patch: tuple[dict[str, Any], ...] = ()
    warnings: tuple[str, ...] = ()


IGNORED = Verdict(ReviewOutcome.IGNORED)


def decide(request: AdmissionRequest, around: ReviewSurroundings, now_s: float) -> Verdict:
    """Return the verdict on a workload that is created now; raises BadInput if it is none.

    If it has our marks, it is a copy of another object: the patch removes them. It also removes a
    suspension of ours, unless the workload is held again: nobody else would lift it.
    """
    if request.operation != "CREATE" or request.kind.kind not in (WorkKind.JOB, WorkKind.POD):
        return IGNORED
    shape = _Shape(decode_object(request.kind.kind, request.object))
    work = work_of(shape.found)
    if work.scheduler not in around.scheduler_names:
        verdict = _no_opt_in(work, sorted(around.scheduler_names))
    elif work.is_served or shape.is_bound or not _may_hold(work, shape, around):
        # `is_served`: a controller waits for it; `is_bound`: a pod on a node cannot be gated.
        verdict = IGNORED
    elif foreign := not_ours(work):
        verdict = Verdict(Unheld.NOT_OURS, warnings=_short([f"not held: {foreign}"]))
    else:
        work = replace(work, namespace=request.namespace)
        verdict = _hold_or_not(work, shape, around, now_s)
    is_suspended_by_us = work.kind == WorkKind.JOB and work.is_held and not shape.is_queued
    if is_suspended_by_us and verdict.outcome != ReviewOutcome.HELD:
        verdict = replace(verdict, patch=(*verdict.patch, _add("/spec/suspend", False)))
    return replace(verdict, patch=(*_unmarking(shape), *verdict.patch))


def _may_hold(work: Work, shape: "_Shape", around: ReviewSurroundings) -> bool:
    """Return whether nothing else keeps the workload from starting, or we may gate it with Kueue.

    Kueue suspends the Jobs of its queues and owns their `suspend`. A workload that arrives stopped
    by us is a copy of held work, or passed one of our webhooks before.
    """
    if not shape.is_queued:
        return not work.is_stopped or work.is_held
    return around.kueue_gated_by and work.kind == WorkKind.JOB


def _hold_or_not(work: Work, shape: "_Shape", around: ReviewSurroundings, now_s: float) -> Verdict:
    rules = around.rules
    hold_request, cron_job = hold_request_at(work, rules, now_s)
    resolved = rules.policy_for(work.namespace, hold_request.policy)
    slowest_speed = rules.slowest_speed(work.gpus)
    terms = hold_terms(hold_request, resolved.policy, cron_job, slowest_speed)
    warnings = [resolved.fault] if resolved.fault else []
    if isinstance(terms, NotHeld):
        if terms.reason in (Unheld.BAD_ANNOTATION, Unheld.NO_SLACK):
            warnings.append(f"not held: {terms.text}")
        return Verdict(terms.reason, warnings=_short(warnings))
    if rules.is_emergency_release:
        return Verdict(Unheld.EMERGENCY, warnings=_short(warnings))
    if resolved.policy.mode != Mode.ENFORCE:
        return Verdict(ReviewOutcome.SHADOW, warnings=_short(warnings))
    if not around.is_releasable:
        marks = _annotated(shape, {labels.HOLD_REASON: _UNRELEASABLE})
        return Verdict(ReviewOutcome.UNRELEASABLE, tuple(marks), _short([*warnings, _UNRELEASABLE]))
    return Verdict(ReviewOutcome.HELD, _patch(work.kind, shape, terms, now_s), _short(warnings))


def _no_opt_in(work: Work, names: list[str]) -> Verdict:
    found = [name for name in _ASKS if name in work.annotations]
    if not found:
        return IGNORED
    warning = f"{found[0]} has no effect without schedulerName: {' or '.join(names)}"
    return Verdict(ReviewOutcome.NO_OPT_IN, warnings=_short([warning]))


def answer(uid: str, verdict: Verdict) -> bytes:
    """Return the AdmissionReview of a verdict, as JSON."""
    response: dict[str, Any] = {"uid": uid, "allowed": True}
    if verdict.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(verdict.patch)).decode()
    if verdict.warnings:
        response["warnings"] = verdict.warnings
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    return msgspec.json.encode(review)


def read_review(body: bytes) -> AdmissionRequest:
    """Return the request in an AdmissionReview; raises BadInput if the body is none."""
    try:
        return msgspec.json.decode(body, type=AdmissionReview).request
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise BadInput(f"not an AdmissionReview: {fault}") from fault


@dataclass(frozen=True, slots=True)
class _Shape:
    """Which parts of the object exist: a JSON patch cannot add to an absent part."""

    found: JobObject | GatedPod

    @property
    def metadata(self) -> Meta:
        """Return its metadata, with all annotations and labels."""
        return self.found.metadata

    @property
    def is_bound(self) -> bool:
        """Return whether it is a pod with a node."""
        return isinstance(self.found, GatedPod) and bool(self.found.spec.nodeName)

    @property
    def scheduling_gates(self) -> list[SchedulingGate] | None:
        """Return a pod's scheduling gates; None if it has no such list, or is a Job."""
        return self.found.spec.schedulingGates if isinstance(self.found, GatedPod) else None

    @property
    def is_queued(self) -> bool:
        """Return whether it is in a queue of Kueue."""
        return KUEUE_QUEUE in (self.metadata.labels or {})

    @property
    def has_our_gate(self) -> bool:
        """Return whether it is a pod that already has our gate."""
        return any(gate.name == labels.GATE for gate in self.scheduling_gates or ())

    @property
    def gates(self) -> str:
        """Return the annotation of the gates that keep Kueue from considering it."""
        return (self.metadata.annotations or {}).get(GATED_BY, "")


def _patch(
    kind: WorkKind, shape: _Shape, terms: HoldTerms, now_s: float
) -> tuple[dict[str, Any], ...]:
    marks = {
        labels.LATEST_START: format_timestamp(round(terms.latest_start_s)),
        labels.HELD_AT: format_timestamp(round(now_s, 3)),
        labels.HOLD_REASON: f"waits for its plan; it may wait by {terms.bound}",
    }
    patch = _annotated(shape, marks)
    if kind == WorkKind.JOB and shape.is_queued:
        patch.append(_add(annotation_path(GATED_BY), with_ours(shape.gates)))
    elif kind == WorkKind.JOB:
        patch.append(_add("/spec/suspend", True))
    else:
        if shape.scheduling_gates is None:
            patch.append(_add("/spec/schedulingGates", []))
        if not shape.has_our_gate:  # the API server refuses a gate twice
            patch.append(_add("/spec/schedulingGates/-", {"name": labels.GATE}))
    return tuple(patch)


def _annotated(shape: _Shape, marks: Mapping[str, str]) -> list[dict[str, Any]]:
    first = [_add("/metadata/annotations", {})] if shape.metadata.annotations is None else []
    return first + [_add(annotation_path(name), text) for name, text in marks.items()]


def _unmarking(shape: _Shape) -> tuple[dict[str, Any], ...]:
    marks = sorted(labels.WRITTEN & (shape.metadata.annotations or {}).keys())
    patch = [{"op": "remove", "path": annotation_path(name)} for name in marks]
    if queue_gates(shape.metadata.labels, shape.metadata.annotations):
        other_gates, path = without_ours(shape.gates), annotation_path(GATED_BY)
        patch.append(_add(path, other_gates) if other_gates else {"op": "remove", "path": path})
    return tuple(patch)


def _add(path: str, value: object) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _short(warnings: list[str]) -> tuple[str, ...]:
    return tuple(f"greensched: {each}"[:_MOST_WARNING] for each in warnings)
