"""Sends writes to the API server: the most urgent first, a few at a time, rate-limited by lane."""

import asyncio
import heapq
import itertools
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import Enum, auto

import structlog
from aiolimiter import AsyncLimiter

log = structlog.get_logger()

Send = Callable[[], Awaitable[bool | None]]  # returns False if refused: it must be sent again
_AT_ONCE = 8  # requests in flight; httpx slows with the square of its connections
# A forecast may move thousands of plans. Their starts are hours away, and the API server and
# webhooks serve others too.
_PLANS_PER_SECOND = 100.0
_FIRST_AGAIN_S, _LAST_AGAIN_S = 0.5, 5.0  # pauses between tries while everything is refused


class Lane(Enum):
    """The rate limit that an entry waits for; lanes listed first go first."""

    RELEASE = auto()  # a start that is not urgent
    NOW = auto()  # without a limit
    PLAN = auto()


@dataclass(order=True)
class _Entry:
    urgency_s: float
    order: int
    uid: str = field(compare=False)
    send: Send = field(compare=False)
    lane: Lane = field(compare=False)
    refusals: int = field(default=0, compare=False)


class _Waiting:
    """The entries of one lane; only one task at a time waits for the lane's rate limit."""

    def __init__(self, per_second: float | None) -> None:
        self.heap: list[_Entry] = []
        self.is_pacing = False
        self._limiter = None
        if per_second is not None:
            self._limiter = AsyncLimiter(max(per_second, 1.0), max(1.0 / per_second, 1.0))

    @property
    def is_paced(self) -> bool:
        """Return whether the lane has a rate limit."""
        return self._limiter is not None

    async def pace(self) -> None:
        """Wait until one more may be sent."""
        assert self._limiter is not None
        self.is_pacing = True
        try:
            await self._limiter.acquire()
        finally:
            self.is_pacing = False


class Outbox:
    """Sends by lane and urgency: only a uid's newest entry, and never two of a uid at a time."""

    def __init__(self, per_second: float, plans_per_second: float = _PLANS_PER_SECOND) -> None:
        """Limit releases to `per_second`; entries of `Lane.NOW` have no limit."""
        self._lanes = {
            Lane.RELEASE: _Waiting(per_second),
            Lane.NOW: _Waiting(None),
            Lane.PLAN: _Waiting(plans_per_second),
        }
        self._newest: dict[str, _Entry] = {}
        self._refused: dict[str, _Entry] = {}
        self._again_s = _FIRST_AGAIN_S
        self._sending: set[str] = set()
        self._order = itertools.count()
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._newest) + len(self._refused)

    def put(self, uid: str, urgency_s: float, send: Send, lane: Lane = Lane.NOW) -> None:
        """Queue an entry; it replaces an earlier one of the same uid that is not sent yet.

        The entry with the least `urgency_s` of a lane goes first.
        """
        self._refused.pop(uid, None)
        self._push(_Entry(urgency_s, next(self._order), uid, send, lane))

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(self._send_all())
            group.create_task(self._try_again())

    async def _send_all(self) -> None:
        while True:
            entry = self._next()
            if entry is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            lane = self._lanes[entry.lane]
            if lane.is_paced:
                await lane.pace()
                self._changed.set()
            if not self._take(entry):
                continue  # a newer entry has replaced it meanwhile
            self._sending.add(entry.uid)
            try:
                self._note(entry, is_refused=await entry.send() is False)
            except Exception:  # one workload's fault must not block others
                log.exception("a write failed", uid=entry.uid)
            finally:
                self._sending.discard(entry.uid)
                self._changed.set()

    def _push(self, entry: _Entry) -> None:
        self._newest[entry.uid] = entry
        heapq.heappush(self._lanes[entry.lane].heap, entry)
        self._changed.set()

    def _note(self, entry: _Entry, *, is_refused: bool) -> None:
        """Keep a refused entry; once a refused entry succeeds, queue all of them again."""
        if is_refused:
            entry.refusals += 1
            if entry.uid not in self._newest:
                self._refused[entry.uid] = entry
        elif entry.refusals:
            refused, self._refused = self._refused, {}
            self._again_s = _FIRST_AGAIN_S
            for each in refused.values():
                self._push(each)

    async def _try_again(self) -> None:
        """Send one refused entry after each pause, the one with the fewest refusals first.

        So an API server that refuses is not flooded, and no entry blocks the others for good.
        """
        while True:
            await asyncio.sleep(self._again_s * random.uniform(0.8, 1.0))
            if not self._refused:
                self._again_s = _FIRST_AGAIN_S
                continue
            first = min(self._refused.values(), key=lambda each: (each.refusals, each))
            self._push(self._refused.pop(first.uid))
            self._again_s = min(self._again_s * 2, _LAST_AGAIN_S)

    def _next(self) -> _Entry | None:
        """Return the next entry, from the first lane in which no task waits for the rate limit.

        An entry that waits for a limit may be replaced meanwhile.
        """
        for lane in self._lanes.values():
            if not lane.is_pacing and (entry := self._first(lane.heap)):
                return entry
        return None

    def _first(self, heap: list[_Entry]) -> _Entry | None:
        postponed: list[_Entry] = []
        found = None
        while heap and found is None:
            entry = heapq.heappop(heap)
            if self._newest.get(entry.uid) is not entry:
                continue  # a newer entry has replaced it
            if entry.uid in self._sending:
                postponed.append(entry)
                continue
            found = entry
        for entry in postponed:
            heapq.heappush(heap, entry)
        return found

    def _take(self, entry: _Entry) -> bool:
        """Take an entry out for sending; return False if a newer one has replaced it."""
        if self._newest.get(entry.uid) is not entry:
            return False
        del self._newest[entry.uid]
        return True
