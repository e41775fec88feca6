"""The patch that starts held work, for the controller, the releaser and the command line."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from greensched_core import labels
from greensched_core.kubernetes_api import MERGE_PATCH, STRATEGIC_MERGE_PATCH
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.objects.queue_gate import GATED_BY, without_ours
from greensched_operator.objects.workloads import Work, WorkKind

MEDIA_TYPE = STRATEGIC_MERGE_PATCH
JSON_PATCH = "application/json-patch+json"


class ReleaseReason(StrEnum):
    """Why held work was started; each is a label value of a counter."""

    PLANNED_START = "planned-start"
    RESUMED = "resumed"  # it was paused, and its planned start has come
    NOW_IS_BEST = "now-is-best"  # no later start saves enough
    LATEST_START = "latest-start"  # it could wait no longer
    RUN_NOW = "run-now"
    EMERGENCY = "emergency-release"  # for the whole cluster
    OPT_OUT = "opt-out"  # its hold request was removed, or can no longer be read
    POLICY = "policy"  # its GreenPolicy no longer enforces
    HELD_SHARE = "held-share"  # more is held than the policy allows
    GANG = "gang"  # others of its gang already run and may wait for it
    RELEASER = "releaser"  # the controller did not start it
    UNINSTALL = "uninstall"
    OTHERS = "started-by-others"  # GreenSched only removed its mark


def reason_of(work: Work) -> ReleaseReason:
    """Return why work was started, from its annotation."""
    try:
        return ReleaseReason(work.annotations.get(labels.RELEASE_REASON, ""))
    except ValueError:
        return ReleaseReason.OTHERS


def object_path(kind: str, namespace: str, name: str, kueue: str = "") -> str:
    """Return the path of a Job, pod or Workload; `kueue` is the path of Kueue's API."""
    if kind == WorkKind.WORKLOAD:
        return f"{kueue}/namespaces/{namespace}/workloads/{name}"
    if kind == WorkKind.JOB:
        return f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def media_type(kind: str, queue_gates: str | None = None) -> str:
    """Return the release patch's media type: custom resources have no strategic merge patch."""
    if queue_gates:
        return JSON_PATCH
    return MERGE_PATCH if kind == WorkKind.WORKLOAD else MEDIA_TYPE


def release_patch(
    kind: str,
    uid: str,
    reason: ReleaseReason,
    at_s: float,
    queue_gates: str | None = None,
    *,
    more: Mapping[str, str] | None = None,
) -> bytes:
    """Return the patch that starts a workload and records the reason; safe to repeat.

    The API server refuses it (409, for some Jobs 422) for another object of the same name. It
    removes only our gate, and keeps `suspend` of a Job in a Kueue queue. It adds the annotations in
    `more`.
    """
    annotations = {**_released(reason, at_s), **(more or {})}
    if queue_gates:
        return msgspec.json.encode(_ungating(uid, queue_gates, annotations))
    metadata = {"metadata": {"uid": uid, "annotations": annotations}}
    # The check of a Workload follows from its annotations; Kueue starts the Jobs of its queues.
    if kind == WorkKind.WORKLOAD or queue_gates is not None:
        return msgspec.json.encode(metadata)
    spec: Mapping[str, Any] = {"suspend": False}
    if kind == WorkKind.POD:
        spec = {"schedulingGates": [{"$patch": "delete", "name": labels.GATE}]}
    return msgspec.json.encode({**metadata, "spec": spec})


def unmark_patch(work: Work, at_s: float) -> bytes:
    """Return the patch that removes our mark from work that GreenSched did not start.

    It leaves `suspend` and gates unchanged: whoever started the work may have stopped it again.
    """
    if work.queue_gates:
        return release_patch(work.kind, work.uid, ReleaseReason.OTHERS, at_s, work.queue_gates)
    annotations = _released(ReleaseReason.OTHERS, at_s)
    return msgspec.json.encode({"metadata": {"uid": work.uid, "annotations": annotations}})


def _released(reason: ReleaseReason, at_s: float) -> dict[str, str | None]:
    return {
        labels.LATEST_START: None,
        labels.LATEST_START_OF_010: None,
        labels.HOLD_REASON: None,
        labels.RELEASED_AT: format_timestamp(round(at_s, 3)),
        labels.RELEASE_REASON: reason.value,
    }


def _ungating(uid: str, gates: str, annotations: Mapping[str, str | None]) -> list[dict[str, str]]:
    """Return the JSON patch; it fails (422) if the gates have changed meanwhile."""
    gated_by, others = annotation_path(GATED_BY), without_ours(gates)
    patch = [
        {"op": "replace", "path": "/metadata/uid", "value": uid},
        {"op": "test", "path": gated_by, "value": gates},
        {"op": "replace", "path": gated_by, "value": others},
    ]
    if not others:
        patch[-1] = {"op": "remove", "path": gated_by}
    for name, value in annotations.items():
        path = annotation_path(name)
        patch.append({"op": "add", "path": path, "value": value or ""})
        if value is None:  # JSON patch cannot remove what does not exist, so it is added first
            patch.append({"op": "remove", "path": path})
    return patch


def annotation_path(name: str) -> str:
    """Return the JSON pointer (RFC 6901) of an annotation."""
    return f"/metadata/annotations/{name.replace('~', '~0').replace('/', '~1')}"
