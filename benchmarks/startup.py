"""Time from start to ready on a large cluster, and peak memory, with listing."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from benchmarks.bench_cluster import PODS, at_once, our_extender, pod
from greensched_core.kubernetes_api import MERGE_PATCH, ApiClient
from greensched_testbed.controlplane import ControlPlane

POD_BYTES = 6_000
NODE_BYTES = 15_000


@dataclass(frozen=True)
class Startup:
    """One start: seconds to ready, and peak resident mebibytes."""

    ready_s: float
    peak_rss_mib: float


async def fill(client: ApiClient, nodes: Sequence[str], pods: int) -> dict[str, int]:
    """Create nodes and pods as large as real ones; return their mean listed sizes in bytes."""
    images = [
        {"names": [f"registry.example/team/image-{number}@sha256:{number:064x}"], "sizeBytes": 1}
        for number in range(140)
    ]
    patch = msgspec.json.encode({"status": {"images": images}})
    await at_once(
        [
            partial(client.patch, f"/api/v1/nodes/{name}/status", patch, MERGE_PATCH)
            for name in nodes
        ]
    )
    await at_once(
        [
            partial(
                client.create,
                PODS,
                pod(
                    f"bound-{number}",
                    scheduler="default-scheduler",
                    node=nodes[number % len(nodes)],
                    filler_bytes=POD_BYTES - 1_200,
                ),
            )
            for number in range(pods)
        ]
    )
    return {
        "node": await _mean_size(client, "/api/v1/nodes"),
        "pod": await _mean_size(client, PODS),
    }


def measure(plane: ControlPlane, turns: int) -> list[Startup]:
    """Start the extender `turns` times and return what each start took."""
    starts = []
    for _ in range(turns):
        with our_extender(plane) as running:
            starts.append(Startup(running.ready_s, _peak_rss_mib(running.pid)))
    return starts


async def _mean_size(client: ApiClient, path: str) -> int:
    async for page in client.pages(path, limit=200):
        return sum(len(bytes(item)) for item in page.items) // len(page.items)
    return 0


def _peak_rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/{pid}/status has no VmHWM")


def fill_now(plane: ControlPlane, nodes: Sequence[str], pods: int) -> dict[str, int]:
    """Run `fill` with the administrator's access."""

    async def run() -> dict[str, int]:
        async with ApiClient(plane.access) as client:
            return await fill(client, nodes, pods)

    return asyncio.run(run())
