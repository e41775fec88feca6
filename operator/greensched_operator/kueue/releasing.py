"""Releases Kueue's Workloads that wait for our check: for the releaser and before an uninstall."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from greensched_core.clock import WallClock
from greensched_core.kubernetes_api import ApiClient
from greensched_core.watching import Watch
from greensched_operator.kueue.api import KueueWriter, path_now, served_path
from greensched_operator.kueue.kueue_controller import ChangeSink
from greensched_operator.kueue.workloads import (
    AdmissionCheck,
    KueueWorkload,
    decode_check,
    decode_workload,
    free_from_s,
    wanted_state,
)
from greensched_operator.objects.held import HeldObject
from greensched_operator.objects.release_patch import media_type, object_path
from greensched_operator.objects.workloads import WorkKind


class HeldWorkloads:
    """Kueue's Workloads that wait for one of our checks; none in a cluster without Kueue."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._checks: set[str] = set()
        self._seen: dict[str, KueueWorkload] = {}
        self._writer: KueueWriter | None = None

    def __iter__(self) -> Iterator[HeldObject]:
        checks = frozenset(self._checks)
        for each in self._seen.values():
            if waited_for := each.held_by(checks):
                meta, until_s = each.metadata, free_from_s(each, waited_for)
                yield HeldObject(WorkKind.WORKLOAD, meta.namespace, meta.name, meta.uid, until_s)

    async def run(self, follow: Callable[..., None]) -> None:
        """Watch them until cancelled; `follow` takes the watches."""
        path = await served_path(self._client)
        self._writer = KueueWriter(self._client, path, WallClock())
        checks = ChangeSink[AdmissionCheck](self._put_check, self._drop_check)
        seen = ChangeSink[KueueWorkload](self._put, self._drop)
        watches = [
            Watch[Any](self._client, f"{path}/{name}", decode, sink, WallClock())
            for name, sink, decode in (
                ("admissionchecks", checks, decode_check),
                ("workloads", seen, decode_workload),
            )
        ]
        follow(*watches)
        async with asyncio.TaskGroup() as group:
            for each in watches:
                group.create_task(each.run())

    async def list_anew(self) -> None:
        """List them once, without watching; raises ApiUnavailable."""
        self._checks, self._seen = set(), {}
        path = await path_now(self._client)
        if not path:
            return
        self._writer = KueueWriter(self._client, path, WallClock())
        async for page in self._client.pages(f"{path}/admissionchecks"):
            for raw in page.items:
                self._put_check(decode_check(raw))
        async for page in self._client.pages(f"{path}/workloads"):
            for raw in page.items:
                self._put(decode_workload(raw))

    async def release(self, held: HeldObject, body: bytes) -> bool:
        """Record the reason on a Workload and set its check to Ready, so that Kueue admits it.

        Return whether its check was written; raises ApiUnavailable.
        """
        if self._writer is None:
            return False
        path = object_path(held.kind, held.namespace, held.name, self._writer.path)
        marked = decode_workload(await self._client.patch(path, body, media_type(held.kind)))
        waited_for = marked.held_by(frozenset(self._checks))
        wanted = [found for each in waited_for if (found := wanted_state(marked, each))]
        return not wanted or await self._writer.say(marked, wanted)

    def _put_check(self, check: AdmissionCheck) -> None:
        if check.is_ours:
            self._checks.add(check.metadata.name)

    def _drop_check(self, check: AdmissionCheck) -> None:
        self._checks.discard(check.metadata.name)

    def _put(self, workload: KueueWorkload) -> None:
        self._seen[workload.metadata.uid] = workload

    def _drop(self, workload: KueueWorkload) -> None:
        self._seen.pop(workload.metadata.uid, None)
