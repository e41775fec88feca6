"""Signs of life by a Lease: who can start held work gives them, and the webhook listens for them.

The Lease by which a leader is elected is no such sign: a leader may be blind, or have lost the
right to start anything, while nobody is there to do better.

How old a sign is, is measured on the listener's own clock from when he saw it come, so that clocks
that differ do no harm, as leader.py does.
"""

import asyncio
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import structlog

from greensched_core.api_paths import JOBS, PODS, leases_path
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.timestamps import format_micro_time
from greensched_operator.runtime.own_lease import OwnLease
from greensched_operator.runtime.rights import may

if TYPE_CHECKING:  # a command line that reads the constants here has no metrics
    from prometheus_client import Gauge

log = structlog.get_logger()

HEARD_WITHIN_S = 60.0
BEATS_EVERY_S = 5.0  # as often as a leader renews its Lease
_LOOKS_EVERY_S = 0.2  # until it can do its work
_ASKS_EVERY_S = 2 * HEARD_WITHIN_S  # whether it still has the right to
_STARTED = (JOBS, PODS)
# Who lives is heard twice within it.
LISTENS_S = 15.0


class _Spec(msgspec.Struct, frozen=True):
    holderIdentity: str | None = None
    renewTime: str | None = None


class Lease(msgspec.Struct, frozen=True):
    """A Lease, read as far as a listener must."""

    spec: _Spec = _Spec()


decode_lease = msgspec.json.Decoder(Lease).decode


class Pulse:
    """What is heard of the holders of one Lease; a sink for `greensched_core.watching.Watch`.

    A Lease that was there before us may be a dead one's: only a word that comes while we listen is
    a sign of life.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: Lease | None = None
        self._heard_at: float | None = None
        self._listens_since: float | None = None  # when the first list ended
        self._is_listed = False

    @property
    def is_heard(self) -> bool:
        """Tell whether a holder has said something lately."""
        heard_at = self._heard_at
        return heard_at is not None and self._monotonic() - heard_at < HEARD_WITHIN_S

    @property
    def has_listened(self) -> bool:
        """Tell whether who lives must have been heard by now."""
        since = self._listens_since
        return since is not None and self._monotonic() - since >= LISTENS_S

    def list_began(self) -> None:
        """A list of one Lease, or of none, follows."""
        self._is_listed = False

    def list_ended(self) -> None:
        """Without a Lease nobody is heard."""
        if not self._is_listed:
            self._forget()
        if self._listens_since is None:
            self._listens_since = self._monotonic()

    def upsert(self, item: Lease) -> None:
        """The Lease is there or has changed."""
        self._is_listed = True
        before, self._last = self._last, item
        if item != before and self._listens_since is not None:
            self._heard_at = self._monotonic()

    def remove(self, item: Lease) -> None:
        """The Lease is gone."""
        self._forget()

    def _forget(self) -> None:
        self._last = self._heard_at = None


class RightToStart:
    """Whether we have the right to start held Jobs and pods."""

    def __init__(self, client: ApiClient, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._is_held = False
        self._monotonic = monotonic
        self._asked_at = -math.inf

    async def is_held(self) -> bool:
        """Return the API server's last answer; it is asked again every two minutes.

        Each question is a request for each kind, and counts as a write. While the answer is no it
        is asked every five seconds.
        """
        pause_s = _ASKS_EVERY_S if self._is_held else BEATS_EVERY_S
        if self._monotonic() - self._asked_at > pause_s:
            rights = await asyncio.gather(*(may(self._client, "patch", path) for path in _STARTED))
            self._is_held, self._asked_at = all(rights), self._monotonic()
        return self._is_held


class Heartbeat:
    """Gives signs of life of a process that sees what is held and has the right to start it."""

    def __init__(
        self,
        lease: OwnLease,
        sees: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """All who can start what is held share a Lease: each word is of one of them."""
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
        """Tell whether the last sign that was taken counts for whoever heard it."""
        return self._monotonic() - self._given_at < HEARD_WITHIN_S

    async def run(self, given: "Gauge") -> None:
        """Give signs until cancelled; what the API server refuses is tried again.

        `given` shows whether the last one counts.
        """
        given.set_function(lambda: float(self.is_given))
        while True:
            await self._until_able()
            try:
                await self.beat()
            except ApiUnavailable as fault:
                log.warning("the sign of life could not be written", reason=str(fault))
            await asyncio.sleep(BEATS_EVERY_S)

    async def _until_able(self) -> None:
        waited_s = 0.0
        while why := await self._why_not():
            await asyncio.sleep(_LOOKS_EVERY_S)
            waited_s += _LOOKS_EVERY_S
            if waited_s - _LOOKS_EVERY_S < HEARD_WITHIN_S / 2 <= waited_s:  # once
                log.warning(
                    "no sign of life is written; without any, nothing new is held", reason=why
                )

    async def _why_not(self) -> str:
        if not self._sees():
            return "it cannot see the work that it must start"
        return "" if await self._right.is_held() else "it has no right to start Jobs and pods"

    async def beat(self) -> None:
        """Give one sign; raises ApiUnavailable."""
        sent_at = self._monotonic()  # others count from when they saw it, which is later
        now = format_micro_time(time.time())
        lasts_s = round(HEARD_WITHIN_S)
        spec = {"holderIdentity": self._identity, "leaseDurationSeconds": lasts_s, "renewTime": now}
        body = msgspec.json.encode({"metadata": {"name": self._name}, "spec": spec})
        try:
            await self._client.patch(f"{self._leases}/{self._name}", body)
        except ApiUnavailable as fault:
            if fault.status != 404:
                raise
            await self._client.create(self._leases, body)
        self._given_at = sent_at
