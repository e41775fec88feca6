"""Finds Jobs and pods by the names that users type: `x`, `job/x`, `pod/x`."""

import asyncio
from dataclasses import dataclass

from greensched_cli.reading.queued_work import kueue_workload_of, named_workload
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.quoting import quoted
from greensched_operator.objects.release_patch import object_path
from greensched_operator.objects.workloads import Work, WorkKind, decode_work

# As kubectl spells them.
_KINDS = {
    "job": WorkKind.JOB, "jobs": WorkKind.JOB, "job.batch": WorkKind.JOB,
        "jobs.batch": WorkKind.JOB,
    "pod": WorkKind.POD, "pods": WorkKind.POD, "po": WorkKind.POD,
    "workload": WorkKind.WORKLOAD, "workloads": WorkKind.WORKLOAD, "wl": WorkKind.WORKLOAD,
}  # fmt: skip
_NOT_FOUND = 404


@dataclass(frozen=True, slots=True)
class Target:
    """A name from the user: of a Job, of a pod, or of either."""

    kinds: tuple[WorkKind, ...]
    name: str

    @property
    def text(self) -> str:
        """Return the target as text."""
        if len(self.kinds) > 1:
            return f"{self.name} (Job or pod)"
        return f"{self.kinds[0].lower()}/{self.name}"

    @property
    def kinds_text(self) -> str:
        """Return its kinds as text, in the plural."""
        return " and ".join(f"{kind}s" for kind in self.kinds)


def parse_target(text: str) -> Target:
    """Return what `x`, `job/x` or `pod/x` names; raise BadInput for anything else."""
    kind, slash, name = text.rpartition("/")
    if not slash and name:
        return Target((WorkKind.JOB, WorkKind.POD), name)
    if kind.lower() not in _KINDS or not name:
        raise BadInput(f"{quoted(text)} names no work: write NAME, job/NAME or pod/NAME")
    return Target((_KINDS[kind.lower()],), name)


async def find_named(client: ApiClient, namespace: str, target: Target) -> list[Work]:
    """Return the Job, the pod, or both of that name; raise ApiUnavailable if refused."""
    found = await asyncio.gather(
        *(_find(client, kind, namespace, target.name) for kind in target.kinds),
        return_exceptions=True,
    )
    works = [each for each in found if isinstance(each, Work)]
    faults = [each for each in found if isinstance(each, BaseException)]
    if faults and not works:
        raise faults[0]
    return works


async def _find(client: ApiClient, kind: WorkKind, namespace: str, name: str) -> Work | None:
    try:
        if kind == WorkKind.WORKLOAD:
            return await named_workload(client, namespace, name)
        found = decode_work(kind, await client.get(object_path(kind, namespace, name)))
        return found if found.is_barred else await kueue_workload_of(client, found) or found
    except ApiUnavailable as fault:
        if fault.status == _NOT_FOUND:
            return None
        raise
