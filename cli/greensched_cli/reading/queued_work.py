"""Jobs that wait in a Kueue queue for our AdmissionCheck, read from their Workloads."""

from collections.abc import Iterable

import msgspec

from greensched_cli.reading.operator_state import ClusterPart
from greensched_cli.reading.pieces import Pieces, Scope
from greensched_core import labels
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.kueue.api import path_now
from greensched_operator.kueue.workloads import KueueWorkload, decode_workload, workload_work
from greensched_operator.objects.release_patch import object_path
from greensched_operator.objects.workloads import Work, WorkKind, decode_work


async def read_queued(pieces: Pieces, scope: Scope, jobs: Iterable[Work]) -> list[Work]:
    """Return the Workloads of Jobs that we hold, or have started; none without Kueue.

    Raises ApiUnavailable if the API server does not answer.
    """
    queued = {job.uid: job for job in jobs if job.queue_gates is not None}
    if not queued:
        return []
    try:
        api = await path_now(pieces.client)
    except ApiUnavailable as fault:
        pieces.refused(ClusterPart.WORKLOADS, fault)
        return []
    if not api:
        return []
    listed = await pieces.listed(ClusterPart.WORKLOADS, scope.path(api, "workloads"), _read)
    return [
        workload_work(each, queued[each.job_uid], "")
        for each in listed
        if each.job_uid in queued and _is_ours(each)
    ]


async def kueue_workload_of(client: ApiClient, job: Work) -> Work | None:
    """Return the Workload by which a Job waits or waited for us; None also without the right.

    Raises ApiUnavailable if the API server does not answer.
    """
    if job.queue_gates is None:
        return None
    try:
        if api := await path_now(client):
            async for page in client.pages(f"{api}/namespaces/{job.namespace}/workloads"):
                for found in map(_read, page.items):
                    if found.job_uid == job.uid and _is_ours(found):
                        return workload_work(found, job, "")
    except ApiUnavailable as fault:
        if fault.status is None:
            raise
    return None


async def named_workload(client: ApiClient, namespace: str, name: str) -> Work | None:
    """Return a Workload that waits or waited for us; None otherwise. Raises ApiUnavailable."""
    path = object_path(WorkKind.WORKLOAD, namespace, name, await path_now(client))
    found = _read(await client.get(path))
    if not found.job_name or not _is_ours(found):
        return None
    job = await client.get(object_path(WorkKind.JOB, namespace, found.job_name))
    return workload_work(found, decode_work(WorkKind.JOB, job), "")


def _is_ours(workload: KueueWorkload) -> bool:
    """Return whether a Workload waits for GreenSched, or GreenSched started it."""
    is_over = workload.has("Finished") or workload.has("Admitted")
    return workload.is_started or (labels.LATEST_START in workload.annotations and not is_over)


def _read(raw: bytes | msgspec.Raw) -> KueueWorkload:
    try:
        return decode_workload(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise BadInput(f"not a Workload: {fault}") from fault
