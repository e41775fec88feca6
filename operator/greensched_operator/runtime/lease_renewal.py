"""Keeps the Lease from a thread of its own: whatever the loop that works does, it is renewed.

The thread speaks for that loop only while it shows life, so that one that is stuck leads no longer.
A process that is frozen is frozen with its thread: then the Lease runs out.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import structlog

from greensched_core.kubernetes_api import ApiClient
from greensched_operator.runtime.leader import LEASES_A_LOOP_MAY_BE_STUCK, Leadership

log = structlog.get_logger()

_SHOWS_LIFE_EVERY_S = 0.5
_LOOKS_EVERY_S = 0.1
Tell = Callable[[asyncio.Event], None]


class LeaseRenewal:
    """Stands for the Lease, and keeps it; `leading` and `lost` tell how that goes."""

    def __init__(self, client: ApiClient, leadership: Leadership, duration_s: float) -> None:
        """`client` is that of the leadership, and nobody else's: the thread closes it."""
        self._client = client
        self._leadership = leadership
        self._stuck_after_s = duration_s * LEASES_A_LOOP_MAY_BE_STUCK
        self._alive_at = time.monotonic()
        self._stop = threading.Event()
        self._fault: Exception | None = None
        self.leading, self.lost = asyncio.Event(), asyncio.Event()

    def holds(self) -> bool:
        """Tell whether nobody else can lead by now."""
        return self._leadership.holds()

    def unread(self) -> str:
        """Return "" while the Lease is read and, where it is free, taken; else why it is not."""
        return self._leadership.unread()

    @property
    def is_blind(self) -> bool:
        """Tell whether it was taken though this replica sees too little: nobody else did."""
        return self._leadership.is_blind

    async def run(self) -> None:
        """Stand for the Lease and keep it until cancelled: then leave it to others at once."""
        ours, ended = asyncio.get_running_loop(), asyncio.Event()

        def tell(event: asyncio.Event) -> None:
            ours.call_soon_threadsafe(event.set)

        thread = threading.Thread(target=self._in_thread, args=(tell, ended), name="lease")
        thread.start()
        try:
            while not ended.is_set():
                self._alive_at = time.monotonic()
                with suppress(TimeoutError):  # of Python 3.11 `wait_for` may lose a cancellation
                    async with asyncio.timeout(_SHOWS_LIFE_EVERY_S):
                        await ended.wait()
        finally:
            self._stop.set()
            await asyncio.to_thread(thread.join)
        if self._fault is not None:
            raise self._fault

    def _in_thread(self, tell: Tell, ended: asyncio.Event) -> None:
        try:
            asyncio.run(self._stand_until_told(tell))
        except Exception as fault:  # whatever it is, `run` raises it
            log.exception("renewing the Lease failed; the process ends")
            self._fault = fault
        finally:
            tell(ended)

    async def _stand_until_told(self, tell: Tell) -> None:
        standing = asyncio.create_task(self._stand(tell))
        try:
            while not self._stop.is_set():
                if standing.done():
                    await standing
                await asyncio.sleep(_LOOKS_EVERY_S)
            standing.cancel()
            await asyncio.gather(standing, return_exceptions=True)
            await self._leadership.give_up()
        finally:
            await self._client.close()

    async def _stand(self, tell: Tell) -> None:
        await self._leadership.acquire()
        tell(self.leading)
        await self._leadership.keep(self._speaks)
        tell(self.lost)

    def _speaks(self) -> bool:
        return time.monotonic() - self._alive_at < self._stuck_after_s
