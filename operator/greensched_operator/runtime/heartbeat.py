"""Heartbeats in a Lease: processes that can start held work write them, the webhook reads them.

The leader's Lease is not a heartbeat: a leader may see nothing, or have lost the right to start
anything, while no replica can do better.

The leader also notes the speed of the slowest node in it: the webhook, which sees no nodes, derives
a latest start from that.

The age of a heartbeat is measured on the reader's own clock, from when it saw the heartbeat
arrive. So different clocks do no harm, as in leader.py.
"""

import asyncio
import json
import math
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec
import structlog

from greensched_core import labels
from greensched_core.api_paths import JOBS, PODS, leases_path
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.timestamps import format_micro_time
from greensched_operator.runtime.own_lease import OwnLease
from greensched_operator.runtime.rights import may

if TYPE_CHECKING:  # the command line reads constants from here, without prometheus_client
    from prometheus_client import Gauge

log = structlog.get_logger()

HEARD_WITHIN_S = 60.0
BEATS_EVERY_S = 5.0  # as often as a leader renews its Lease
_LOOKS_EVERY_S = 0.2  # until this process can start work
_ASKS_EVERY_S = 2 * HEARD_WITHIN_S  # whether this process still has the right to start work
_STARTED = (JOBS, PODS)
LISTENS_S = 15.0  # a live process writes at least twice in this time


class _Spec(msgspec.Struct, frozen=True):
    holderIdentity: str | None = None
    renewTime: str | None = None


class _Meta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] | None = None


class Lease(msgspec.Struct, frozen=True):
    """The fields of a Lease that a reader of heartbeats needs."""

    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()


decode_lease = msgspec.json.Decoder(Lease).decode


class LeaseHeartbeat:
    """The heartbeats in one Lease; a sink for `greensched_core.watching.Watch`.

    A Lease that existed before the first list may belong to a dead process. Only a change that
    arrives afterwards counts as a heartbeat. One that a later list finds may be as old as the last
    look, and counts from then: its process may have died since.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: Lease | None = None
        self._heard_at: float | None = None
        self._listens_since: float | None = None  # when the first list ended
        self._looked_at: float | None = None  # when the last list ended or a change arrived
        self._is_listing = self._is_listed = False

    @property
    def is_heard(self) -> bool:
        """Return whether a heartbeat arrived within the last minute."""
        heard_at = self._heard_at
        return heard_at is not None and self._monotonic() - heard_at < HEARD_WITHIN_S

    @property
    def has_listened(self) -> bool:
        """Return whether a live process would have been heard by now."""
        since = self._listens_since
        return since is not None and self._monotonic() - since >= LISTENS_S

    def slowest_speed(self, gpus: float) -> float:
        """Return the speed of the slowest node that may get work with so many GPUs.

        It is relative to a reference node: the last that a leader noted; 1 before the first.
        """
        noted = self._last.metadata.annotations if self._last is not None else None
        return _noted_speeds((noted or {}).get(labels.SLOWEST_SPEEDS, ""))[gpus > 0.0]

    def list_began(self) -> None:
        """Begin a list of one Lease or none."""
        self._is_listing, self._is_listed = True, False

    def list_ended(self) -> None:
        """End the list; without a Lease in it there is no heartbeat."""
        if not self._is_listed:
            self._forget()
        self._is_listing, self._looked_at = False, self._monotonic()
        if self._listens_since is None:
            self._listens_since = self._looked_at

    def upsert(self, item: Lease) -> None:
        """Take a Lease that exists or has changed."""
        self._is_listed = True
        before, self._last = self._last, item
        if not self._is_listing:
            self._looked_at = self._monotonic()
        is_new = before is None or item.spec != before.spec  # anybody may annotate it
        if is_new and self._listens_since is not None:
            self._heard_at = self._looked_at

    def remove(self, item: Lease) -> None:
        """Forget a Lease that was deleted."""
        self._forget()

    def _forget(self) -> None:
        self._last = self._heard_at = None


def speed_note(slowest_speed: Callable[[float], float]) -> dict[str, str]:
    """Return the annotation with the slowest node's speed, by whether work requests GPUs."""
    return {labels.SLOWEST_SPEEDS: json.dumps([slowest_speed(gpus) for gpus in (0.0, 1.0)])}


def _noted_speeds(text: str) -> tuple[float, float]:
    """Return the speeds for work without GPUs and with them; 1 for text that no leader wrote."""
    try:
        without, with_gpus = msgspec.json.decode(text, type=tuple[float, float])
    except msgspec.DecodeError:
        return 1.0, 1.0
    are_speeds = all(0.0 < speed < math.inf for speed in (without, with_gpus))
    return (without, with_gpus) if are_speeds else (1.0, 1.0)


class RightToStart:
    """Asks the API server whether this process has the right to start held Jobs and pods."""

    def __init__(self, client: ApiClient, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._is_held = False
        self._monotonic = monotonic
        self._asked_at = -math.inf

    async def is_held(self) -> bool:
        """Return the API server's last answer, which is asked anew every two minutes.

        After a no it is asked anew every five seconds. Each question takes one request per kind,
        and these count as writes.
        """
        pause_s = _ASKS_EVERY_S if self._is_held else BEATS_EVERY_S
        if self._monotonic() - self._asked_at > pause_s:
            rights = await asyncio.gather(*(may(self._client, "patch", path) for path in _STARTED))
            self._is_held, self._asked_at = all(rights), self._monotonic()
        return self._is_held


class Heartbeat:
    """Writes the heartbeat of a process that sees held work and has the right to start it."""

    def __init__(
        self,
        lease: OwnLease,
        sees: Callable[[], bool],
        noted: Callable[[], Mapping[str, str]] = dict,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`sees` returns whether the process sees held work; all such processes share the Lease.

        `noted` returns the annotations that a heartbeat writes; the others on the Lease stay.
        """
        self._noted = noted
        self._client = lease.client
        self._leases = leases_path(lease.namespace)
        self._name = lease.name
        self._identity = lease.identity
        self._sees = sees
        self._right = RightToStart(lease.client, monotonic)
        self._monotonic = monotonic
        self._given_at = -math.inf

    @property
    def is_given(self) -> bool:
        """Return whether the last written heartbeat still counts for its readers."""
        return self._monotonic() - self._given_at < HEARD_WITHIN_S

    async def run(self, given: "Gauge") -> None:
        """Write heartbeats until cancelled, also after the API server refused one.

        The gauge `given` shows whether the last one counts.
        """
        given.set_function(lambda: float(self.is_given))
        while True:
            await self._until_able()
            try:
                await self.beat()
            except ApiUnavailable as fault:
                log.warning(
                    "the sign of life could not be written; trying again", reason=str(fault)
                )
            await asyncio.sleep(BEATS_EVERY_S)

    async def _until_able(self) -> None:
        waited_s = 0.0
        while why := await self._why_not():
            await asyncio.sleep(_LOOKS_EVERY_S)
            waited_s += _LOOKS_EVERY_S
            if waited_s - _LOOKS_EVERY_S < HEARD_WITHIN_S / 2 <= waited_s:  # once
                log.warning(
                    "no sign of life is written; unless another replica writes one, nothing new is"
                    " held",
                    reason=why,
                )

    async def _why_not(self) -> str:
        if not self._sees():
            return "this process does not see all held work"
        return "" if await self._right.is_held() else "no right to start (patch) Jobs and pods"

    async def beat(self) -> None:
        """Write one heartbeat; raises ApiUnavailable."""
        sent_at = self._monotonic()  # readers count from when they saw it, which is later
        now = format_micro_time(time.time())
        lasts_s = round(HEARD_WITHIN_S)
        spec = {"holderIdentity": self._identity, "leaseDurationSeconds": lasts_s, "renewTime": now}
        meta = {"name": self._name, "annotations": self._noted()}
        body = msgspec.json.encode({"metadata": meta, "spec": spec})
        try:
            await self._client.patch(f"{self._leases}/{self._name}", body)
        except ApiUnavailable as fault:
            if fault.status != 404:
                raise
            await self._client.create(self._leases, body)
        self._given_at = sent_at
