"""Kueue's Workloads: which ones wait for our AdmissionCheck, and its state for each; pure.

Wire format: kueue.x-k8s.io v1beta2; v1beta1 has the same fields. Meaning of a check's states:
kueue.sigs.k8s.io/docs/concepts/admission_check. The plan is written as annotations on the Workload;
the check's state follows from these alone.

A waiting Workload is Pending and keeps the quota that Kueue reserved for it. Retry would return the
quota, but cannot wait: v0.15.0 does not evict a Workload before its requeueAfterSeconds have
passed, and without them may immediately reserve its quota again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from greensched_core import labels
from greensched_core.errors import BadInput
from greensched_core.signals.timestamps import format_timestamp, parse_timestamp
from greensched_operator.objects.own_annotations import with_latest_start
from greensched_operator.objects.workloads import Condition, Meta, Work, WorkKind

KUEUE_GROUP = "kueue.x-k8s.io"
CONTROLLER = f"{labels.GROUP}/hold"  # spec.controllerName of our AdmissionChecks
FIELD_MANAGER = "greensched-operator"
NOT_OF_A_JOB = "not held: GreenSched holds only Workloads of batch/v1 Jobs"
WAITED = "its Job was held before, and has been started"
UNPLANNED_S = 300.0  # of waiting without a plan, after which the releaser starts a Workload


class AdmissionState(StrEnum):
    """States that we write to our checks."""

    PENDING = "Pending"
    READY = "Ready"


class CheckState(msgspec.Struct):
    """An entry of a Workload's status.admissionChecks."""

    name: str = ""
    state: str = ""
    message: str = ""
    lastTransitionTime: str | None = None


class WorkloadStatus(msgspec.Struct):
    """status of a Workload."""

    conditions: list[Condition] | None = None
    admissionChecks: list[CheckState] | None = None


class KueueWorkload(msgspec.Struct):
    """A Workload as the API server writes it."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    status: WorkloadStatus = msgspec.field(default_factory=WorkloadStatus)

    @property
    def annotations(self) -> Mapping[str, str]:
        """Return its annotations."""
        return with_latest_start(self.metadata.annotations or {})

    @property
    def job_uid(self) -> str:
        """Return the UID of its Job; "" for another kind of work."""
        owners = self.metadata.ownerReferences or ()
        return next((each.uid for each in owners if each.kind == "Job"), "")

    @property
    def is_started(self) -> bool:
        """Return whether the controller or the releaser started it."""
        return labels.RELEASED_AT in self.annotations

    @property
    def job_name(self) -> str:
        """Return the name of its Job; "" for another kind of work."""
        owners = self.metadata.ownerReferences or ()
        return next((each.name for each in owners if each.kind == "Job"), "")

    def has(self, condition: str) -> bool:
        """Return whether a condition is true."""
        found = self.status.conditions or ()
        return any(each.type == condition and each.status == "True" for each in found)

    def has_check(self, checks: frozenset[str]) -> bool:
        """Return whether it has an entry for one of our checks."""
        return any(each.name in checks for each in self.status.admissionChecks or ())

    def held_by(self, checks: frozenset[str]) -> list[CheckState]:
        """Return the entries of our checks that it waits for; none once admitted or ended."""
        if self.has("Finished") or self.has("Admitted") or self.metadata.deletionTimestamp:
            return []
        found = self.status.admissionChecks or ()
        return [
            each for each in found if each.name in checks and each.state != AdmissionState.READY
        ]


class _CheckSpec(msgspec.Struct):
    controllerName: str = ""


class _CheckStatus(msgspec.Struct):
    conditions: list[Condition] | None = None


class AdmissionCheck(msgspec.Struct):
    """An AdmissionCheck as the API server writes it."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: _CheckSpec = msgspec.field(default_factory=_CheckSpec)
    status: _CheckStatus = msgspec.field(default_factory=_CheckStatus)

    @property
    def is_ours(self) -> bool:
        """Return whether it is ours to decide."""
        return self.spec.controllerName == CONTROLLER

    @property
    def is_active(self) -> bool:
        """Return whether its condition Active is true."""
        found = self.status.conditions or ()
        return any(each.type == "Active" and each.status == "True" for each in found)


decode_check = msgspec.json.Decoder(AdmissionCheck).decode
decode_workload = msgspec.json.Decoder(KueueWorkload).decode


@dataclass(frozen=True, slots=True)
class Wanted:
    """The state and message to write for a check of a Workload."""

    name: str
    state: AdmissionState
    message: str


def wanted_state(workload: KueueWorkload, check: CheckState) -> Wanted | None:
    """Return what to write for a check that a Workload waits for; None to leave it unchanged."""
    annotations = workload.annotations
    if workload.is_started:
        return Wanted(
            check.name,
            AdmissionState.READY,
            f"started: {annotations.get(labels.RELEASE_REASON, '')}",
        )
    if labels.PLANNED_START not in annotations:
        return None  # no plan yet
    latest_start = annotations.get(labels.LATEST_START, "an unknown time")
    message = (
        f"start planned for {annotations[labels.PLANNED_START]}, latest start {latest_start}: "
        f"{annotations.get(labels.HOLD_REASON, '')}"
    )
    if check.message == message:
        return None
    return Wanted(check.name, AdmissionState.PENDING, message)


def state_patch(workload: KueueWorkload, wanted: list[Wanted], wall_s: float) -> bytes:
    """Return the server-side apply of our entries alone, for the status subresource."""
    at = format_timestamp(int(wall_s))
    entries = [
        {"name": each.name, "state": each.state, "message": each.message, "lastTransitionTime": at}
        for each in wanted
    ]
    return msgspec.json.encode({"status": {"admissionChecks": entries}, **_named(workload)})


def active_patch(wall_s: float) -> bytes:
    """Return the merge patch that makes an AdmissionCheck Active, for the status subresource."""
    condition = {
        "type": "Active", "status": "True", "reason": "Active",
        "message": "the GreenSched operator decides when its Workloads start",
        "lastTransitionTime": format_timestamp(int(wall_s)),
    }  # fmt: skip
    return msgspec.json.encode({"status": {"conditions": [condition]}})


def workload_work(workload: KueueWorkload, job: Work, scheduler: str) -> Work:
    """Return the Work of a Workload that waits for us: with its Job's requests, cores and owner.

    Its queue names our check, which opts it in whatever its scheduler.
    """
    meta = workload.metadata
    asked = {name: text for name, text in job.annotations.items() if name not in labels.WRITTEN}
    ours = {name: text for name, text in workload.annotations.items() if name in labels.WRITTEN}
    marked = {} if workload.is_started else {labels.LATEST_START: ""}
    created = meta.creationTimestamp
    return replace(
        job,
        kind=WorkKind.WORKLOAD,
        name=meta.name,
        uid=meta.uid,
        created_s=None if created is None else parse_timestamp(created),
        annotations=asked | marked | ours,
        scheduler=scheduler,
        is_stopped=True,
        is_finished=False,
        is_leaving=False,
        queue_gates=None,
        job=job,
    )


def free_from_s(workload: KueueWorkload, waited_for: Sequence[CheckState]) -> float:
    """Return when a releaser starts a Workload that waits for us, in epoch seconds.

    `waited_for` are our checks that it waits for; a queue may have received one later.
    """
    if workload.is_started:
        return float("-inf")  # it was started, but its check was not written
    until = workload.annotations.get(labels.LATEST_START)
    if until is not None:
        found = _time(until)
        return float("-inf") if found is None else found
    created_s = _time(workload.metadata.creationTimestamp)
    if created_s is None:
        return float("-inf")
    asked_s = (_time(each.lastTransitionTime) for each in waited_for)
    return max([created_s, *(each for each in asked_s if each is not None)]) + UNPLANNED_S


def _named(workload: KueueWorkload) -> dict[str, object]:
    meta = workload.metadata
    return {"metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}}


def _time(text: str | None) -> float | None:
    try:
        return None if text is None else parse_timestamp(text)
    except BadInput:
        return None
