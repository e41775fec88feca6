"""Leader election among replicas by a Lease (coordination.k8s.io/v1), as in Kubernetes' components.

How long the leader has been silent is measured on our own clock, from when we saw its last
renewal. So different clocks do no harm (client-go, tools/leaderelection).
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable

import msgspec
import structlog

from greensched_core.api_paths import leases_path
from greensched_core.errors import ApiUnavailable
from greensched_core.signals.timestamps import format_micro_time
from greensched_operator.runtime.own_lease import OwnLease

log = structlog.get_logger()

_RENEWALS_A_LEASE = 3  # that fit into a lease: two may fail
_LONGEST_RENEWAL_S = 5.0  # then the next one is due
_LEASES_STOOD_BACK = 4.0  # that a replica that sees too little leaves a free Lease to others
LEASES_A_LOOP_MAY_BE_STUCK = 3.0  # then it leads no longer, and a probe has the process killed


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
    """Takes and renews the Lease; a leader that loses it must stop immediately."""

    def __init__(
        self,
        lease: OwnLease,
        *,
        duration_s: float = 15.0,
        monotonic: Callable[[], float] = time.monotonic,
        sees: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        """`sees` returns whether this replica sees what a leader must see; if not, it waits."""
        self._sees = sees
        self._blind_at: float | None = None
        self._client = lease.client
        self._leases = leases_path(lease.namespace)
        self._name = lease.name
        self.identity = lease.identity
        self._duration_s = duration_s
        self._monotonic = monotonic
        self._seen: tuple[str | None, str | None] = (None, None)  # holder and its last renewal
        self._seen_at = monotonic()
        self._renewed_at = -float("inf")  # when our last successful renewal was sent
        self._read_at = -float("inf")  # when the Lease was last read, and taken or left to another
        self._fault = "the Lease has not been read yet"

    async def acquire(self) -> None:
        """Return once this replica leads."""
        while not await self.tried():
            await asyncio.sleep(self._pause_s())
        log.info("leading", identity=self.identity)

    @property
    def is_blind(self) -> bool:
        """Return whether it took the Lease although it sees too little: no other replica did."""
        return self._blind_at is not None

    def unread(self) -> str:
        """Return "" while the Lease can be read and, if free, taken; else why not."""
        if self._monotonic() - self._read_at < self._duration_s:
            return ""
        return f"cannot compete for the Lease {self._name}: {self._fault}"

    async def keep(self, speaks: Callable[[], bool] = lambda: True) -> None:
        """Renew until another replica has the Lease; then return.

        While `speaks` returns False or the API server is away, the Lease expires: then `holds`
        returns False and another replica may take it. If none has, the next renewal regains it.
        """
        while True:
            await asyncio.sleep(self._pause_s())
            if not speaks():
                log.error("the Lease is not renewed: the working event loop is stuck")
                continue
            if not await self.tried() and self._seen[0] not in (self.identity, "", None):
                log.error("leadership lost", holder=self._seen[0])
                return

    def holds(self) -> bool:
        """Return whether no other replica can lead yet.

        A frozen process continues where it stopped, before it learns that it lost the Lease.
        """
        return self._monotonic() - self._renewed_at < self._duration_s

    async def give_up(self) -> None:
        """Clear the Lease if it is ours, so that another replica can take it immediately."""
        self._renewed_at = -float("inf")
        try:
            async with asyncio.timeout(_LONGEST_RENEWAL_S):
                lease = await self._read()
                if lease is not None and lease.spec.holderIdentity == self.identity:
                    await self._write(lease, holder="")
        except (ApiUnavailable, TimeoutError) as fault:
            log.warning(
                "the Lease could not be given back; it expires by itself",
                reason=str(fault) or "no answer in time",
            )

    async def tried(self) -> bool:
        """Take or renew the Lease; return whether it is ours now."""
        sent_at = self._monotonic()  # others count from when they saw it, which is later
        try:
            async with asyncio.timeout(min(_LONGEST_RENEWAL_S, self._duration_s / 2)):
                is_ours = await self._took()
        except (ApiUnavailable, TimeoutError) as fault:
            if isinstance(fault, ApiUnavailable) and fault.status == 409:  # another was faster
                self._read_at = sent_at
                return False
            self._fault = str(fault) or "no answer in time"
            log.warning("the Lease could not be written", reason=self._fault)
            return False
        self._read_at = sent_at
        if not is_ours:
            return False
        self._seen = (self.identity, None)
        self._renewed_at = sent_at
        return True

    async def _took(self) -> bool:
        lease = await self._read()
        if lease is not None and not self._may_take(lease):
            return False
        if self._seen[0] != self.identity and not await self._may_compete():
            return False
        if lease is None:
            await self._client.create(self._leases, self._body(None, self.identity))
        else:
            await self._write(lease, self.identity)
        return True

    async def _may_compete(self) -> bool:
        """Return whether to take a free Lease, or to leave it to a replica that sees more."""
        if self._sees is None or await self._sees():
            self._blind_at = None
            return True
        if self._blind_at is None:
            self._blind_at = self._monotonic()
            log.error(
                "leaves a free Lease to other replicas for a while: no right to list and watch all"
                " that a leader must see"
            )
        return self._monotonic() - self._blind_at > self._duration_s * _LEASES_STOOD_BACK

    def _may_take(self, lease: _Lease) -> bool:
        holder, renewed = lease.spec.holderIdentity, lease.spec.renewTime
        if not holder or holder == self.identity:
            return True
        if (holder, renewed) != self._seen:
            self._seen, self._seen_at = (holder, renewed), self._monotonic()
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
        now = format_micro_time(time.time())
        transitions = (lease.spec.leaseTransitions or 0) if lease else 0
        is_new = lease is not None and lease.spec.holderIdentity != holder
        meta = {"name": self._name}
        if lease is not None:  # refused (409) if another replica has written since
            meta["resourceVersion"] = lease.metadata.resourceVersion
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._duration_s)),
            "renewTime": now,
            "leaseTransitions": transitions + (1 if is_new and holder else 0),
        }
        if is_new or lease is None:
            spec["acquireTime"] = now
        return msgspec.json.encode({"metadata": meta, "spec": spec})

    def _pause_s(self) -> float:
        return self._duration_s / _RENEWALS_A_LEASE * random.uniform(0.8, 1.0)
