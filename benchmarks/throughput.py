"""Pods bound per second: our extender, the no-op extender, lower bounds and none, in turns.

A turn creates the pods, then starts kube-scheduler; the rate is from the first to the last bind
that a watch sees. etcd, API server, scheduler, extender and client share the machine.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median

import msgspec
import psutil

from benchmarks.bench_cluster import (
    FLOOR,
    PODS,
    Profile,
    Running,
    at_once,
    delete_pods,
    hung_extender,
    noop_extender,
    our_extender,
    pod,
    scheduler_config,
)
from greensched_core.kubernetes_api import ApiClient
from greensched_core.objects import PodObject
from greensched_testbed.controlplane import ControlPlane

CHART = Profile()
_TURN_TIMEOUT_S = 180.0


class _Event(msgspec.Struct):
    type: str
    object: PodObject


_decode = msgspec.json.Decoder(_Event).decode
_decode_pod = msgspec.json.Decoder(PodObject).decode


@contextmanager
def _none(plane: ControlPlane) -> Iterator[None]:
    yield None


KINDS: dict[str, Callable[[ControlPlane], AbstractContextManager[Running | None]]] = {
    "none": _none,
    "noop": noop_extender,
    "floor": partial(our_extender, program=FLOOR),
    "unranked": partial(our_extender, program=(*FLOOR, "unranked")),
    "onnx": our_extender,
    "hung": hung_extender,
}


@dataclass(frozen=True)
class Turn:
    """The figures of one turn."""

    pods_per_s: float
    pods_by_node: dict[str, int]
    extender_cpu_ms: float  # of its process, per pod; 0 without an extender


@dataclass
class Turns:
    """The turns of each kind, in the order in which they ran."""

    by_kind: dict[str, list[Turn]] = field(default_factory=dict)

    def rates(self, kind: str) -> list[float]:
        """Return pods per second, turn by turn."""
        return [turn.pods_per_s for turn in self.by_kind[kind]]

    def ratio(self, kind: str, other: str) -> list[float]:
        """Return the paired ratios, turn by turn."""
        pairs = zip(self.rates(kind), self.rates(other), strict=True)
        return [mine / theirs for mine, theirs in pairs]


def measure(plane: ControlPlane, turns: int, pods: int, say: Callable[[str], None]) -> Turns:
    """Run `turns` rounds of each kind but `hung`, in an order that rotates."""
    found = Turns({kind: [] for kind in KINDS if kind != "hung"})
    kinds = list(found.by_kind)
    for number in range(turns):
        first = number % len(kinds)
        order = kinds[first:] + kinds[:first]
        for kind in order:
            found.by_kind[kind].append(one_turn(plane, kind, pods))
        latest = ", ".join(f"{kind} {found.rates(kind)[-1]:.0f}" for kind in kinds)
        say(f"turn {number + 1} of {turns}: {latest} pods/s")
    return found


def one_turn(
    plane: ControlPlane, kind: str, pods: int, profile: Profile = CHART, *, cpu: str = "100m"
) -> Turn:
    """Bind `pods` pods that request `cpu` (a Kubernetes quantity) each."""
    with KINDS[kind](plane) as running:
        config = scheduler_config(plane, running.url if running else None, profile)
        before_s = _cpu_s(running)
        rate, pods_by_node = asyncio.run(_bind_all(plane, config, pods, cpu))
        cpu_ms = (_cpu_s(running) - before_s) * 1e3 / pods
    return Turn(rate, pods_by_node, cpu_ms)


def _cpu_s(running: Running | None) -> float:
    if running is None:
        return 0.0
    times = psutil.Process(running.pid).cpu_times()
    return float(times.user + times.system)


async def _bind_all(
    plane: ControlPlane, config: str, pods: int, cpu: str
) -> tuple[float, dict[str, int]]:
    kubeconfig = plane.kubeconfig_for_service_account("greensched", "greensched-scheduler")
    async with ApiClient(plane.access) as client:
        await delete_pods(client)
        await at_once(
            [
                partial(client.create, PODS, pod(f"p-{number}", scheduler="greensched", cpu=cpu))
                for number in range(pods)
            ]
        )
        version = ""
        async for page in client.pages(PODS, limit=1):
            version = page.metadata.resourceVersion
            break
        await asyncio.to_thread(plane.start_scheduler, "greensched-scheduler", config, kubeconfig)
        try:
            rate = await asyncio.wait_for(_rate(client, version, pods), _TURN_TIMEOUT_S)
            return rate, await _pods_by_node(client)
        finally:
            await asyncio.to_thread(plane.stop, "greensched-scheduler")
            await delete_pods(client)


async def _rate(client: ApiClient, version: str, pods: int) -> float:
    first = last = 0.0
    bound: set[str] = set()
    while len(bound) < pods:  # the API server ends slow watches; resume from there
        async with client.watch(PODS, version) as events:
            async for line in events:
                event = _decode(line)
                if event.type == "ERROR":
                    raise RuntimeError(f"watch of the benchmark's pods: {line[:300]!r}")
                item, version = event.object, event.object.metadata.resourceVersion
                if item.spec.nodeName and item.metadata.name not in bound:
                    last = time.perf_counter()
                    first = first or last
                    bound.add(item.metadata.name)
                    if len(bound) == pods:
                        break
    return (pods - 1) / (last - first)


async def _pods_by_node(client: ApiClient) -> dict[str, int]:
    counts: Counter[str] = Counter()
    async for page in client.pages(PODS):
        counts.update(_decode_pod(raw).spec.nodeName or "" for raw in page.items)
    return dict(counts)


def spread(values: list[float]) -> str:
    """Return median, minimum and maximum as text."""
    return f"{median(values):.3g} ({min(values):.3g} – {max(values):.3g})"
