"""Records placements in the background, since asking extenders takes time."""

import asyncio
from collections.abc import Callable

from greensched_core.clock import Clock
from greensched_core.ledger_records import LedgerRecord
from greensched_operator.ledger.placements import AskReplicas, placement_of
from greensched_operator.objects.placed_pods import PlacedPod

_MOST_WAITING = 2_000  # pods, when a burst is bound faster than extenders can be asked


class PlacementRecorder:
    """Takes bound pods at any time and records them one by one."""

    def __init__(
        self,
        ask: AskReplicas,
        write: Callable[[LedgerRecord], None],
        clock: Clock,
        lost: Callable[[], None],
    ) -> None:
        """`lost` is called for each pod that is not recorded because the queue is full."""
        self._ask = ask
        self._write = write
        self._clock = clock
        self._lost = lost
        self._waiting: asyncio.Queue[PlacedPod] = asyncio.Queue(_MOST_WAITING)

    def take(self, pod: PlacedPod) -> None:
        """Take a pod that was just bound; returns immediately."""
        try:
            self._waiting.put_nowait(pod)
        except asyncio.QueueFull:
            self._lost()

    async def run(self) -> None:
        """Record until cancelled."""
        while True:
            pod = await self._waiting.get()
            record = await placement_of(pod, self._ask, self._clock.now())
            if record is not None:
                self._write(record)
