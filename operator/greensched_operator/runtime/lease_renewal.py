"""Renews the Lease from a separate thread, so that a busy event loop does not lose it.

The thread renews only while the working event loop shows life, so a stuck loop stops leading.
If the process is frozen, so is the thread: then the Lease expires.
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
SetEvent = Callable[[asyncio.Event], None]


class LeaseRenewal:
    """Competes for the Lease and renews it; the events `leading` and `lost` report the outcome."""

    def __init__(self, client: ApiClient, leadership: Leadership, duration_s: float) -> None:
        """`client` is used by the leadership alone: the thread closes it."""
        self._client = client
        self._leadership = leadership
        self._stuck_after_s = duration_s * LEASES_A_LOOP_MAY_BE_STUCK
        self._alive_at = time.monotonic()
        self._stop = threading.Event()
        self._fault: Exception | None = None
        self.leading, self.lost = asyncio.Event(), asyncio.Event()

    def holds(self) -> bool:
        """Return whether no other replica can lead yet."""
        return self._leadership.holds()

    def unread(self) -> str:
        """Return "" while the Lease can be read and, if free, taken; else why not."""
        return self._leadership.unread()

    @property
    def is_blind(self) -> bool:
        """Return whether it took the Lease although it sees too little: no other replica did."""
        return self._leadership.is_blind

    async def run(self) -> None:
        """Compete for the Lease and renew it until cancelled; then give it up immediately."""
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def set_event(event: asyncio.Event) -> None:
            loop.call_soon_threadsafe(event.set)

        thread = threading.Thread(target=self._in_thread, args=(set_event, ended), name="lease")
        thread.start()
        try:
            while not ended.is_set():
                self._alive_at = time.monotonic()
                with suppress(TimeoutError):  # Python 3.11's `wait_for` may lose a cancellation
                    async with asyncio.timeout(_SHOWS_LIFE_EVERY_S):
                        await ended.wait()
        finally:
            self._stop.set()
            await asyncio.to_thread(thread.join)
        if self._fault is not None:
            raise self._fault

    def _in_thread(self, set_event: SetEvent, ended: asyncio.Event) -> None:
        try:
            asyncio.run(self._compete_until_stopped(set_event))
        except Exception as fault:  # of any kind: `run` raises it
            log.exception("renewing the Lease failed; the process ends")
            self._fault = fault
        finally:
            set_event(ended)

    async def _compete_until_stopped(self, set_event: SetEvent) -> None:
        competing = asyncio.create_task(self._compete(set_event))
        try:
            while not self._stop.is_set():
                if competing.done():
                    await competing
                await asyncio.sleep(_LOOKS_EVERY_S)
            competing.cancel()
            await asyncio.gather(competing, return_exceptions=True)
            await self._leadership.give_up()
        finally:
            await self._client.close()

    async def _compete(self, set_event: SetEvent) -> None:
        await self._leadership.acquire()
        set_event(self.leading)
        await self._leadership.keep(self._speaks)
        set_event(self.lost)

    def _speaks(self) -> bool:
        return time.monotonic() - self._alive_at < self._stuck_after_s
