"""The patch that starts held work: one for the operator, the releaser and the command line."""

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
    """Why held work was started; a counter has one label value for each."""

    PLANNED_START = "planned-start"
    RESUMED = "resumed"  # it was paused, and its planned start has come
    NOW_IS_BEST = "now-is-best"  # no later start saves enough
    LATEST_START = "latest-start"  # it could wait no longer
    RUN_NOW = "run-now"
    EMERGENCY = "emergency-release"  # the switch for the whole cluster
    OPT_OUT = "opt-out"  # what let it wait was taken away, or can no longer be read
    POLICY = "policy"  # its GreenPolicy no longer enforces
    HELD_SHARE = "held-share"  # more is held than the policy allows
    GANG = "gang"  # others of its gang run already, and may wait for it
    RELEASER = "releaser"  # the operator did not
    UNINSTALL = "uninstall"
    OTHERS = "started-by-others"  # nothing was left to do but to take our mark off


def reason_of(work: Work) -> ReleaseReason:
    """Return why work was started, as is written on it."""
    try:
        return ReleaseReason(work.annotations.get(labels.RELEASE_REASON, ""))
    except ValueError:
        return ReleaseReason.OTHERS


def object_path(kind: str, namespace: str, name: str, kueue: str = "") -> str:
    """Return where a Job, pod or Workload is; `kueue` is the path of Kueue's API."""
    if kind == WorkKind.WORKLOAD:
        return f"{kueue}/namespaces/{namespace}/workloads/{name}"
    if kind == WorkKind.JOB:
        return f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"
    return f"/api/v1/namespaces/{namespace}/pods/{name}"


def media_type(kind: str, queue_gates: str | None = None) -> str:
    """Return how the release of an object is read: custom resources know no strategic merge."""
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
    """Return the patch that starts a workload, and says why; safe to repeat.

    The API server refuses it (409, of some Jobs 422) for another object of the same name. Of gates
    only ours goes; of a Job that Kueue takes, `suspend` stays. `more` annotations come with it.
    """
    annotations = {**_released(reason, at_s), **(more or {})}
    if queue_gates:
        return msgspec.json.encode(_ungating(uid, queue_gates, annotations))
    metadata = {"metadata": {"uid": uid, "annotations": annotations}}
    if (
        kind == WorkKind.WORKLOAD or queue_gates is not None
    ):  # its check, or Kueue, follows from them
        return msgspec.json.encode(metadata)
    spec: Mapping[str, Any] = {"suspend": False}
    if kind == WorkKind.POD:
        spec = {"schedulingGates": [{"$patch": "delete", "name": labels.GATE}]}
    return msgspec.json.encode({**metadata, "spec": spec})


def unmark_patch(work: Work, at_s: float) -> bytes:
    """Return the patch that takes our mark off work that somebody else has started.

    What stops it stays as it is: whoever started it may have stopped it again.
    """
    if work.queue_gates:
        return release_patch(work.kind, work.uid, ReleaseReason.OTHERS, at_s, work.queue_gates)
    annotations = _released(ReleaseReason.OTHERS, at_s)
    return msgspec.json.encode({"metadata": {"uid": work.uid, "annotations": annotations}})


def _released(reason: ReleaseReason, at_s: float) -> dict[str, str | None]:
    return {
        labels.LATEST_START: None,
        labels.HOLD_UNTIL: None,
        labels.HOLD_REASON: None,
        labels.RELEASED_AT: format_timestamp(round(at_s, 3)),
        labels.RELEASE_REASON: reason.value,
    }


def _ungating(uid: str, gates: str, annotations: Mapping[str, str | None]) -> list[dict[str, str]]:
    """Return the JSON patch; it fails (422) where others have changed the gates meanwhile."""
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
        if value is None:  # what is not there cannot be removed
            patch.append({"op": "remove", "path": path})
    return patch


def annotation_path(name: str) -> str:
    """Return where a JSON patch finds an annotation (RFC 6901)."""
    return f"/metadata/annotations/{name.replace('~', '~0').replace('/', '~1')}"
