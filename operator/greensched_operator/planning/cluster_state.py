"""The planner's view of the cluster: room and watts per core by zone, and running pods."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from greensched_core.clock import Clock
from greensched_core.cluster_settings import PowerAssumptions
from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject, has_finished, workload_of
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.signals.timestamps import parse_timestamp
from greensched_core.state import Node
from greensched_operator.objects.placed_pods import PlacedPod
from greensched_operator.objects.workloads import SERVING_OWNERS
from greensched_policies.costs.merit_order import ALIKE, merit_order

_ROUNDING = 1e-9  # of sums of sizes, as a share


@dataclass(frozen=True, slots=True)
class NodeShape:
    """Equally large and fast nodes of a zone."""

    cpu_cores: float  # of each, allocatable, as all its sizes
    memory_bytes: float
    gpus: float
    speed: float
    count: int

    def takes(self, cpu_cores: float, memory_bytes: float, gpus: float) -> bool:
        """Return whether a pod with these requests fits an empty node."""
        return (
            cpu_cores <= self.cpu_cores * (1.0 + _ROUNDING)
            and memory_bytes <= self.memory_bytes * (1.0 + _ROUNDING)
            and gpus <= self.gpus + _ROUNDING
        )


@dataclass(frozen=True, slots=True)
class Zone:
    """The nodes of one grid zone, taken together."""

    name: str
    cpu_cores: float  # allocatable, of schedulable nodes
    watts_per_core: float  # mean, added by a requested core, including the site's PUE
    watts_per_gpu: float = 0.0  # likewise of a GPU
    gpus: float = 0.0  # of schedulable nodes
    speed: float = 1.0  # of a mean run, relative to the reference core: a harmonic mean
    pue: float = 1.0  # mean
    memory_bytes: float = 0.0  # allocatable, of schedulable nodes; 0: not known, and not planned
    shapes: tuple[NodeShape, ...] = ()  # of its schedulable nodes
    merit: tuple[tuple[float, ...], tuple[float, ...]] = (ALIKE, ALIKE)  # of cores, and of GPUs

    def speed_for(self, cpu_cores: float, memory_bytes: float, gpus: float) -> float:
        """Return the speed of a pod's mean run on the nodes that can take it; 0: none can."""
        able = [shape for shape in self.shapes if shape.takes(cpu_cores, memory_bytes, gpus)]
        cores = sum(shape.cpu_cores * shape.count for shape in able)
        slowness = sum(shape.cpu_cores * shape.count / shape.speed for shape in able)
        return cores / slowness if slowness else 0.0


@dataclass(frozen=True, slots=True)
class NodeSite:
    """A node's location: its grid zone and the PUE of its site."""

    zone: str  # "" where it is unknown
    pue: float | None  # None: the default
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class RunningPod:
    """A pod on a node and the cores that it requests."""

    node: str
    cpu_cores: float
    until_s: float  # expected end, by its node's speed; infinity: it never ends by itself
    owner: str = ""  # uid of the controller that created it
    seen_s: float = 0.0  # when it was first seen on the node
    gpus: float = 0.0
    leaves_s: float = math.inf  # end of the grace period, once it is being deleted
    memory_bytes: float = 0.0


class ClusterNodes:
    """The nodes; a sink for their watch."""

    def __init__(
        self,
        zone_map: Mapping[str, str],
        assumed: PowerAssumptions,
        speed_changed: Callable[[], None],
    ) -> None:
        """Call `speed_changed` when the slowest node became faster or slower."""
        self._reader = NodeReader(PowerCatalogue(), zone_map)
        self._assumed, self._speed_changed = assumed, speed_changed
        self._slowest = 1.0, 1.0
        self._is_listing = False
        self._nodes: dict[str, Node] = {}
        self._labels: dict[str, dict[str, str]] = {}
        self._gone: set[str] = set()

    def list_began(self) -> None:
        """Begin a full list."""
        self._gone, self._is_listing = set(self._nodes), True

    def upsert(self, item: NodeObject) -> None:
        """Add or update a node."""
        node, _ = self._reader.read(item)  # the extender reports its faults
        self._gone.discard(node.name)
        self._nodes[node.name] = node
        self._labels[node.name] = item.metadata.labels or {}
        if not self._is_listing:
            self._find_slowest()

    def list_ended(self) -> None:
        """Remove the nodes that the list does not contain."""
        for name in self._gone:
            del self._nodes[name], self._labels[name]
        self._gone, self._is_listing = set(), False
        self._find_slowest()

    def remove(self, item: NodeObject) -> None:
        """Remove a deleted node."""
        self._nodes.pop(item.metadata.name, None)
        self._labels.pop(item.metadata.name, None)
        self._find_slowest()

    def slowest_speed(self, gpus: float) -> float:
        """Return the speed of the slowest node that may get work with so many GPUs.

        It is relative to the reference node; 1 while there is no node.
        """
        return self._slowest[gpus > 0.0]

    def _find_slowest(self) -> None:
        able = [node for node in self._nodes.values() if node.schedulable]
        found = slowest_speeds((node.speed, node.gpu_count) for node in able)
        if found != self._slowest:
            self._slowest = found
            self._speed_changed()

    def __len__(self) -> int:
        return len(self._nodes)

    def zone_of(self, name: str) -> str | None:
        """Return a node's grid zone, "" where it is unknown; None if there is no such node."""
        node = self._nodes.get(name)
        return None if node is None else node.zone

    def speed_of(self, name: str) -> float:
        """Return a node's speed, relative to the reference node; 1 if there is no such node."""
        node = self._nodes.get(name)
        return 1.0 if node is None else node.speed

    def site_of(self, name: str) -> NodeSite | None:
        """Return a node's location; None if there is no such node."""
        node = self._nodes.get(name)
        return None if node is None else NodeSite(node.zone, node.pue, node)

    def zone_names(self) -> frozenset[str]:
        """Return the zones of all nodes, including unschedulable ones."""
        return frozenset(node.zone for node in self._nodes.values())

    def zones(self) -> list[Zone]:
        """Return the zones of schedulable nodes, sorted by name."""
        found: dict[str, list[Node]] = {}
        for node in self._nodes.values():
            if node.schedulable and node.cpu_cores > 0:
                found.setdefault(node.zone, []).append(node)
        return [mean_zone(name, nodes, self._assumed) for name, nodes in sorted(found.items())]

    def mean_memory_bytes(self) -> float:
        """Return the mean memory of a node, 1 where there are no nodes."""
        sizes = [node.memory_bytes for node in self._nodes.values()]
        return sum(sizes) / len(sizes) if sizes else 1.0

    def zones_with(self, selector: tuple[tuple[str, str], ...]) -> frozenset[str]:
        """Return the zones that have a node with all labels of a selector."""
        return frozenset(
            node.zone
            for name, node in list(self._nodes.items())  # the planning thread calls this
            if (labels := self._labels.get(name)) is not None
            and all(labels.get(key) == value for key, value in selector)
        )


def slowest_speeds(nodes: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Return the least speed of nodes for work without GPUs, and with them; 1 without nodes.

    Of each node come its speed and its number of GPUs. If none has GPUs, any may get them.
    """
    every = list(nodes)
    slowest = min((speed for speed, _ in every), default=1.0)
    return slowest, min((speed for speed, gpus in every if gpus), default=slowest)


def mean_zone(name: str, nodes: Sequence[Node], assumed: PowerAssumptions) -> Zone:
    """Return the mean of nodes: by cores, except the watts of a GPU."""
    each = [_node_power(node, assumed) for node in nodes]
    cores, gpus, speeds, pues, core_w, gpu_w = np.array(each, np.float64).T
    whole, whole_gpus = float(cores.sum()), float(gpus.sum())
    shapes = Counter(
        (node.cpu_cores, node.memory_bytes, float(node.gpu_count), node.speed) for node in nodes
    )
    return Zone(
        name=name,
        cpu_cores=whole,
        watts_per_core=float(core_w.sum()) / whole,
        watts_per_gpu=float(gpu_w.sum()) / whole_gpus if whole_gpus else 0.0,
        gpus=whole_gpus,
        speed=whole / float((cores / speeds).sum()),
        pue=float(pues @ cores) / whole,
        memory_bytes=sum(node.memory_bytes for node in nodes),
        shapes=tuple(NodeShape(*shape, count) for shape, count in shapes.items()),
        merit=(
            merit_order(core_w, cores, speeds, cores), merit_order(gpu_w, gpus, speeds, cores)
        ),
    )  # fmt: skip


def _node_power(node: Node, assumed: PowerAssumptions) -> tuple[float, ...]:
    """Return a node's cores, GPUs, speed and PUE, and the watts above idle of both, busy."""
    pue = node.pue or assumed.default_pue
    core_w = (node.curve.at(assumed.utilisation_ratio) - node.curve.idle_w) * pue
    gpu_w = 0.0
    if node.gpu:
        gpu_w = node.gpu.count * (node.gpu.peak_w - node.gpu.idle_w) * assumed.gpu_ratio * pue
    return node.cpu_cores, node.gpu_count, node.speed, pue, core_w, gpu_w


class RunningPods:
    """The pods on nodes; a sink for their watch."""

    def __init__(
        self,
        scheduler_names: frozenset[str],
        default_runtime_s: float,
        clock: Clock,
        placed: Callable[[PlacedPod], None],
        expected_s: Callable[[str, float], float | None],
        speed_of: Callable[[str], float],
    ) -> None:
        """Call `placed` with each pod of our schedulers that is bound while this watches.

        `expected_s` returns a Job's expected runtime, by its uid and the node's speed; None where
        it is unknown. `speed_of` returns a node's speed by its name.
        """
        self._placed, self._speed_of = placed, speed_of
        self._expected_s = expected_s
        self._has_listed = False
        self._schedulers = scheduler_names
        self._default_runtime_s = default_runtime_s
        self._clock = clock
        self._pods: dict[str, RunningPod] = {}
        self._gone: set[str] = set()

    def __contains__(self, uid: object) -> bool:
        """Return whether the pod with a UID is on a node and has not ended."""
        return uid in self._pods

    def __iter__(self) -> Iterator[RunningPod]:
        """Yield each pod; its Job, which may become known later than the pod, sets the end.

        One that is being deleted ends with its grace period.
        """
        expected_s = cache(self._expected_s)  # one call for all pods of a Job on equal nodes
        for pod in self._pods.values():
            speed = self._speed_of(pod.node)
            runtime_s = expected_s(pod.owner, speed) if pod.owner else None
            if runtime_s is None:
                runtime_s = (pod.until_s - pod.seen_s) / speed
            until_s = min(pod.seen_s + runtime_s, pod.leaves_s)
            yield pod if until_s == pod.until_s else replace(pod, until_s=until_s)

    def list_began(self) -> None:
        """Begin a full list."""
        self._gone = set(self._pods)

    def by_owner(self) -> dict[str, list[RunningPod]]:
        """Return the pods by the uid of the controller that created them."""
        found: dict[str, list[RunningPod]] = {}
        for pod in self:
            found.setdefault(pod.owner, []).append(pod)
        return found

    def upsert(self, item: PlacedPod) -> None:
        """Add or update a pod; its requests are read when it is first seen on a node."""
        uid, node = item.metadata.uid, item.spec.nodeName or ""
        self._gone.discard(uid)
        if has_finished(item) or not node:
            self._pods.pop(uid, None)
            return
        known = self._pods.get(uid)
        if known is None or known.node != node:
            pod, now_s, maker = workload_of(item), self._clock.now(), item.metadata.maker
            kind, owner = ("", "") if maker is None else (maker.kind, maker.uid)
            runtime_s = pod.runtime_s
            if runtime_s is None:
                runtime_s = self._assumed_runtime_s(pod.scheduler, kind)
            until_s = now_s + runtime_s
            self._pods[uid] = RunningPod(
                node, pod.cpu_cores, until_s, owner, now_s, pod.gpus, memory_bytes=pod.memory_bytes
            )
            if self._has_listed and pod.scheduler in self._schedulers:
                self._placed(item)
        if item.metadata.deletionTimestamp is not None:
            leaves_s = parse_timestamp(item.metadata.deletionTimestamp)
            self._pods[uid] = replace(self._pods[uid], leaves_s=leaves_s)

    def list_ended(self) -> None:
        """Remove the pods that the list does not contain."""
        for uid in self._gone:
            self._pods.pop(uid, None)
        self._gone = set()
        self._has_listed = True

    def remove(self, item: PlacedPod) -> None:
        """Remove a deleted pod."""
        self._pods.pop(item.metadata.uid, None)

    def _assumed_runtime_s(self, scheduler: str, owner_kind: str) -> float:
        """Return how long a pod runs that says nothing of it; replicas of services: for ever."""
        is_work = scheduler in self._schedulers and owner_kind not in SERVING_OWNERS
        return self._default_runtime_s if is_work else math.inf
