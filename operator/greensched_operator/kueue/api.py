"""Calls of Kueue's API: the version that is served, and writes to Workloads and checks."""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.kueue.workloads import (
    FIELD_MANAGER,
    KUEUE_GROUP,
    AdmissionCheck,
    KueueWorkload,
    Wanted,
    active_patch,
    state_patch,
)

log = structlog.get_logger()

APPLY = "application/apply-patch+yaml"
_LOOKED_FOR_EVERY_S = 30.0  # wall seconds


class _Version(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct):
    preferredVersion: _Version


async def path_now(client: ApiClient) -> str:
    """Return the path of Kueue's API, "" in a cluster without Kueue; raises ApiUnavailable."""
    try:
        found = msgspec.json.decode(await client.get(f"/apis/{KUEUE_GROUP}"), type=_Group)
    except msgspec.DecodeError as fault:
        raise ApiUnavailable(
            f"/apis/{KUEUE_GROUP}: the answer is not an API group: {fault}"
        ) from fault
    except ApiUnavailable as fault:
        if fault.status != 404:
            raise
        return ""
    return f"/apis/{KUEUE_GROUP}/{found.preferredVersion.version}"


async def served_path(client: ApiClient) -> str:
    """Wait until Kueue's API is served, forever in a cluster without Kueue; return its path."""
    while True:
        try:
            if path := await path_now(client):
                return path
        except ApiUnavailable as fault:
            log.info("Kueue's API could not be looked up; trying again in 30 s", reason=str(fault))
        await asyncio.sleep(_LOOKED_FOR_EVERY_S)


class KueueWriter:
    """Writes the states of our AdmissionChecks."""

    def __init__(
        self,
        client: ApiClient,
        path: str,
        wall: Clock,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_write` is called before each write."""
        self._may_write = may_write
        self._client = client
        self.path = path
        self._wall = wall

    async def say(self, workload: KueueWorkload, wanted: list[Wanted]) -> bool:
        """Write our checks' entries; return whether that succeeded or the Workload is gone."""
        meta = workload.metadata
        path = f"{self.path}/namespaces/{meta.namespace}/workloads/{meta.name}/status"
        version = self.path.removeprefix("/apis/")
        kind = {"apiVersion": version, "kind": "Workload"}
        patch = msgspec.json.decode(state_patch(workload, wanted, self._wall.now()))
        query = f"?fieldManager={FIELD_MANAGER}&force=true"
        return await self._sent(f"{path}{query}", msgspec.json.encode(kind | patch), APPLY)

    async def activate(self, check: AdmissionCheck) -> bool:
        """Mark a check as Active: a controller decides on it."""
        path = f"{self.path}/admissionchecks/{check.metadata.name}/status"
        return await self._sent(path, active_patch(self._wall.now()))

    async def _sent(self, path: str, body: bytes, media_type: str = "") -> bool:
        if not self._may_write():
            return False
        try:
            if media_type:
                await self._client.patch(path, body, media_type)
            else:
                await self._client.patch(path, body)
        except ApiUnavailable as fault:
            if fault.status in (404, 409):  # deleted, or replaced by another object of its name
                return True
            log.warning("write to Kueue's API failed", path=path, reason=str(fault)[:500])
            return False
        return True
