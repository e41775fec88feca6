"""Reads CPU time from every node's kubelet during the suite, and returns its pods' energy."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.metering.cpu_energy import joules_counter
from greensched_core.metering.energy_pieces import (
    EnergyPoint,
    Piece,
    counter_pieces,
    energy_j,
    scaled,
    share_seen,
)
from greensched_core.metering.pod_runs import PodRun
from greensched_testbed.stress.kubelet_pages import PodName, read_page

EVERY_S = 5.0  # the kubelet itself samples about every ten seconds
_AT_ONCE = 8
# Share of a run's time. A kubelet forgets a pod at its end, some ten seconds after its last sample.
# The suite's work is steady, so that the rest is taken to be like the part that was sampled.
_LEAST_SEEN = 0.5


class KubeletMeter:
    """The CPU time that kubelets reported, by node and by pod."""

    def __init__(self, client: ApiClient, nodes: Sequence[str], clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._nodes: dict[str, list[EnergyPoint]] = {name: [] for name in nodes}
        self._pods: dict[PodName, list[EnergyPoint]] = {}
        self.fault = ""  # why a kubelet did not answer the last time; "" if all did

    @asynccontextmanager
    async def asking(self, every_s: float = EVERY_S) -> AsyncIterator[None]:
        """Read every `every_s` seconds while this is open, and once more at its end."""
        asking = asyncio.create_task(self._keep_asking(every_s))
        try:
            yield
            await self.ask()
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def ask(self) -> None:
        """Read every kubelet once; one that does not answer is skipped and named in `fault`."""
        gate, faults = asyncio.Semaphore(_AT_ONCE), []

        async def one(node: str) -> None:
            async with gate:
                try:
                    page = await read_page(self._client, node, self._clock.now())
                except (ApiUnavailable, BadInput) as fault:
                    faults.append(f"{node}: {fault}")
                    return
            if page.node is not None:
                _add(self._nodes[node], page.node)
            for pod, point in page.pods.items():
                _add(self._pods.setdefault(pod, []), point)

        await asyncio.gather(*map(one, self._nodes))
        self.fault = faults[0] if faults else ""

    def pieces(self, runs: Sequence[PodRun]) -> Mapping[str, Sequence[Piece]] | None:
        """Return each run's energy, by UID; None if too little of their total time was sampled."""
        found: dict[str, list[Piece]] = {}
        whole_s = seen_s = 0.0
        for run in runs:
            points = self._pods.get((run.namespace, run.name), [])
            node = self._nodes.get(run.node.name, []) if run.node else []
            mine = _pieces(run, points, node)
            length_s = max(run.until_s - run.begin_s, 1.0)
            seen = share_seen(mine, run.begin_s, run.until_s)
            whole_s, seen_s = whole_s + length_s, seen_s + seen * length_s
            found[run.uid] = mine
        share = seen_s / whole_s if whole_s else 0.0
        if share < _LEAST_SEEN or not any(map(energy_j, found.values())):
            return None
        return {uid: scaled(mine, 1.0 / share) for uid, mine in found.items()}

    async def _keep_asking(self, every_s: float) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(every_s)


def _pieces(run: PodRun, points: Sequence[EnergyPoint], node: Sequence[EnergyPoint]) -> list[Piece]:
    if run.node is None:
        return []
    within = [point for point in points if point[0] > run.begin_s]
    counter = joules_counter(within, node, run.begin_s, run.node.curve, run.node.cpu_cores)
    return counter_pieces(counter, run.begin_s, run.until_s)


def _add(points: list[EnergyPoint], point: EnergyPoint) -> None:
    """Add a point unless it repeats the last one, as between two samples of the kubelet."""
    if not points or point[0] > points[-1][0]:
        points.append(point)
