"""One leader among the replicas, by a Lease (coordination.k8s.io/v1), as Kubernetes' own parts do.

How long the leader has been silent is measured on our own clock from when its last word was seen,
so that clocks that differ do no harm (client-go, tools/leaderelection).
"""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import structlog

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient

log = structlog.get_logger()

_WORDS_A_LEASE = 3  # renewals that fit into a lease: two may fail


class _Meta(msgspec.Struct):
    resourceVersion: str = ""


class _LeaseSpec(msgspec.Struct):
    holderIdentity: str | None = None
    renewTime: str | None = None
    leaseDurationSeconds: int | None = None
    leaseTransitions: int | None = None


class _Lease(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _LeaseSpec = msgspec.field(default_factory=_LeaseSpec)


_decode_lease = msgspec.json.Decoder(_Lease).decode


class Leadership:
    """Takes the Lease and keeps it; whoever loses it must stop at once."""

    def __init__(
        self,
        client: ApiClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        duration_s: float = 15.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._name = name
        self.identity = identity
        self._duration_s = duration_s
        self._monotonic = monotonic
        self._seen: tuple[str | None, str | None] = (None, None)  # holder, and its last word
        self._seen_at = monotonic()
        self._renewed_at = -float("inf")  # when the last word was sent that was taken

    async def acquire(self) -> None:
        """Return once this replica leads."""
        while not await self.tried():
            await asyncio.sleep(self._pause_s())
        log.info("leading", identity=self.identity)

    async def keep(self) -> None:
        """Renew until the Lease is lost; then return. Two thirds of it may pass without a word."""
        while True:
            await asyncio.sleep(self._pause_s())
            if await self.tried():
                continue
            silent_s = self._monotonic() - self._renewed_at
            if self._seen[0] != self.identity or silent_s > self._duration_s * 2 / 3:
                log.error("leadership lost", holder=self._seen[0], silent_s=round(silent_s, 1))
                return

    def holds(self) -> bool:
        """Tell whether nobody else can lead by now.

        A process that was frozen goes on where it stood, before it learns that it lost the Lease.
        """
        return self._monotonic() - self._renewed_at < self._duration_s

    async def give_up(self) -> None:
        """Leave the Lease to another at once, if it is ours."""
        self._renewed_at = -float("inf")
        try:
            lease = await self._read()
            if lease is not None and lease.spec.holderIdentity == self.identity:
                await self._write(lease, holder="")
        except ApiUnavailable as fault:
            log.warning("the Lease runs out by itself", reason=str(fault))

    async def tried(self) -> bool:
        """Take or renew the Lease; tell whether it is ours now."""
        sent_at = self._monotonic()  # others count from when they saw it, which is later
        try:
            lease = await self._read()
            if lease is None:
                await self._client.create(self._leases, self._body(None, self.identity))
            elif not self._may_take(lease):
                return False
            else:
                await self._write(lease, self.identity)
        except ApiUnavailable as fault:
            if fault.status != 409:  # another was faster
                log.warning("the Lease could not be written", reason=str(fault))
            return False
        self._seen = (self.identity, None)
        self._renewed_at = sent_at
        return True

    def _may_take(self, lease: _Lease) -> bool:
        holder, word = lease.spec.holderIdentity, lease.spec.renewTime
        if not holder or holder == self.identity:
            return True
        if (holder, word) != self._seen:
            self._seen, self._seen_at = (holder, word), self._monotonic()
        lasts_s = float(lease.spec.leaseDurationSeconds or self._duration_s)
        return self._monotonic() - self._seen_at > lasts_s

    async def _read(self) -> _Lease | None:
        try:
            raw = await self._client.get(f"{self._leases}/{self._name}")
        except ApiUnavailable as fault:
            if fault.status == 404:
                return None
            raise
        return _decode_lease(raw)

    async def _write(self, lease: _Lease, holder: str) -> None:
        body = self._body(lease, holder)
        await self._client.patch(f"{self._leases}/{self._name}", body)

    def _body(self, lease: _Lease | None, holder: str) -> bytes:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        passed = (lease.spec.leaseTransitions or 0) if lease else 0
        is_new = lease is not None and lease.spec.holderIdentity != holder
        meta = {"name": self._name}
        if lease is not None:  # refused (409) when another has written since
            meta["resourceVersion"] = lease.metadata.resourceVersion
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._duration_s)),
            "renewTime": now,
            "leaseTransitions": passed + (1 if is_new and holder else 0),
        }
        if is_new or lease is None:
            spec["acquireTime"] = now
        return msgspec.json.encode({"metadata": meta, "spec": spec})

    def _pause_s(self) -> float:
        return self._duration_s / _WORDS_A_LEASE * random.uniform(0.8, 1.0)
