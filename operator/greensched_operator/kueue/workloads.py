"""Kueue's Workloads, pure: which wait for our AdmissionCheck, and what that says of each.

Wire format: kueue.x-k8s.io v1beta2; v1beta1 has the same fields. What a check's
states mean: kueue.sigs.k8s.io/docs/concepts/admission_check. What was planned stands as annotations
on the Workload; the check's state follows from them alone.

What waits is Pending, and keeps the quota that Kueue reserved for it. Retry would give that back,
but cannot wait: v0.15.0 does not evict a Workload while its requeueAfterSeconds last, and without
them may reserve its quota anew at once.
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

GROUP = "kueue.x-k8s.io"
CONTROLLER = f"{labels.GROUP}/hold"  # spec.controllerName of the AdmissionChecks that are ours
FIELD_MANAGER = "greensched-operator"
NO_JOB = "not held: GreenSched holds only Workloads of batch/v1 Jobs"
WAITED = "its Job was held before, and has been started"
UNPLANNED_S = 300.0  # so long after it began to wait the releaser frees what nobody has planned


class AdmissionState(StrEnum):
    """States of a check that we give it."""

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
    def said(self) -> Mapping[str, str]:
        """Return its annotations."""
        return with_latest_start(self.metadata.annotations or {})

    @property
    def job_uid(self) -> str:
        """Return the uid of the Job that it stands for; "" for another kind of work."""
        owners = self.metadata.ownerReferences or ()
        return next((each.uid for each in owners if each.kind == "Job"), "")

    @property
    def is_started(self) -> bool:
        """Tell whether it was started, by us or by the releaser."""
        return labels.RELEASED_AT in self.said

    @property
    def job_name(self) -> str:
        """Return the name of that Job."""
        owners = self.metadata.ownerReferences or ()
        return next((each.name for each in owners if each.kind == "Job"), "")

    def has(self, condition: str) -> bool:
        """Tell whether a condition is true."""
        found = self.status.conditions or ()
        return any(each.type == condition and each.status == "True" for each in found)

    def has_check(self, checks: frozenset[str]) -> bool:
        """Tell whether one of our checks is, or was, asked about it."""
        return any(each.name in checks for each in self.status.admissionChecks or ())

    def held_by(self, checks: frozenset[str]) -> list[CheckState]:
        """Return which of our checks it waits for; none once it is admitted or has ended."""
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
        """Tell whether we are its controller."""
        return self.spec.controllerName == CONTROLLER

    @property
    def is_active(self) -> bool:
        """Tell whether its condition Active is true."""
        found = self.status.conditions or ()
        return any(each.type == "Active" and each.status == "True" for each in found)


decode_check = msgspec.json.Decoder(AdmissionCheck).decode
decode_workload = msgspec.json.Decoder(KueueWorkload).decode


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a check is to say of a Workload."""

    name: str
    state: AdmissionState
    message: str


def wanted_state(workload: KueueWorkload, check: CheckState) -> Wanted | None:
    """Return what a check that it waits for is to say; None where it may stay as it is."""
    said = workload.said
    if workload.is_started:
        return Wanted(
            check.name, AdmissionState.READY, f"started: {said.get(labels.RELEASE_REASON, '')}"
        )
    if labels.PLANNED_START not in said:
        return None  # no plan yet
    message = (
        f"start planned for {said[labels.PLANNED_START]}, latest start "
        f"{said.get(labels.LATEST_START, 'an unknown time')}: {said.get(labels.HOLD_REASON, '')}"
    )
    if check.message == message:
        return None
    return Wanted(check.name, AdmissionState.PENDING, message)


def state_patch(workload: KueueWorkload, wanted: list[Wanted], wall_s: float) -> bytes:
    """Return the server-side apply, for the status subresource, of our entries alone."""
    at = format_timestamp(int(wall_s))
    entries = [
        {"name": each.name, "state": each.state, "message": each.message, "lastTransitionTime": at}
        for each in wanted
    ]
    return msgspec.json.encode({"status": {"admissionChecks": entries}, **_named(workload)})


def active_patch(wall_s: float) -> bytes:
    """Return the merge patch, for the status subresource, that makes an AdmissionCheck Active."""
    condition = {
        "type": "Active", "status": "True", "reason": "Active",
        "message": "the GreenSched operator decides when its Workloads start",
        "lastTransitionTime": format_timestamp(int(wall_s)),
    }  # fmt: skip
    return msgspec.json.encode({"status": {"conditions": [condition]}})


def workload_work(workload: KueueWorkload, job: Work, scheduler: str) -> Work:
    """Return what a Workload that waits for us is to planning: its Job's requests, cores and owner.

    That its queue names our check is its opt-in, whatever its scheduler.
    """
    meta = workload.metadata
    asked = {name: said for name, said in job.annotations.items() if name not in labels.WRITTEN}
    ours = {name: said for name, said in workload.said.items() if name in labels.WRITTEN}
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
    """Return from when on a releaser frees a Workload that waits for us, in seconds.

    `waited_for` are those of our checks that it waits for: a queue may have got one late.
    """
    if workload.is_started:
        return float("-inf")  # our last word on it did not reach its check
    until = workload.said.get(labels.LATEST_START)
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
