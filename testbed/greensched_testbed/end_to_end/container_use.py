"""Measures each container's use of its limits, from the kubelets' cAdvisor."""

import json
import threading
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from greensched_core.quantities import parse_quantity
from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.errors import CommandFailed

_EVERY_S = 5.0  # cAdvisor itself samples every 10 to 20 s
_USED = "container_memory_working_set_bytes"
_LIMIT = "container_spec_memory_limit_bytes"
_THROTTLED = "container_cpu_cfs_throttled_seconds_total"  # only for containers with a CPU limit


@dataclass(frozen=True, slots=True)
class ContainerReading:
    """One sample of one container; a limit of 0 means none."""

    pod: str
    container: str
    working_set_bytes: float
    limit_bytes: float
    throttled_s: float  # time throttled by the CPU limit since its start
    taken_at_s: float  # seconds since the epoch, by the kubelet's clock

    @property
    def share(self) -> float:
        """Return how much of its limit it takes; infinity without one."""
        return self.working_set_bytes / self.limit_bytes if self.limit_bytes else float("inf")


def read_cadvisor(text: str, namespace: str) -> Iterator[ContainerReading]:
    """Yield the containers of a namespace from a kubelet's /metrics/cadvisor.

    Raises ValueError for another text format.
    """
    found: dict[tuple[str, str], dict[str, Sample]] = {}
    wanted = (_USED, _LIMIT, _THROTTLED)
    lines = [line for line in text.splitlines() if line.startswith(wanted)]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            marks = sample.labels
            if marks.get("namespace") == namespace and marks.get("container"):
                key = marks["pod"], marks["container"]
                found.setdefault(key, {})[sample.name] = sample
    for (pod, container), samples in found.items():
        if _USED in samples:
            limit, throttled = (
                samples[name].value if name in samples else 0.0 for name in (_LIMIT, _THROTTLED)
            )
            used = samples[_USED]
            taken_at_s = float(used.timestamp or 0.0)
            yield ContainerReading(pod, container, used.value, limit, throttled, taken_at_s)


def container_limits(pods: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Return the memory limit of each container that has one, in bytes, by pod and container."""
    return {
        (pod["metadata"]["name"], container["name"]): parse_quantity(limit)
        for pod in pods["items"]
        for container in pod["spec"]["containers"]
        if (limit := container.get("resources", {}).get("limits", {}).get("memory"))
    }


def with_limit(
    reading: ContainerReading, limits: Mapping[tuple[str, str], float]
) -> ContainerReading:
    """Return a reading with the limit of its pod's spec if cAdvisor reports none.

    For a container that is starting or has ended it reports 0, as for one without limit.
    """
    if reading.limit_bytes:
        return reading
    return replace(reading, limit_bytes=limits.get((reading.pod, reading.container), 0.0))


@dataclass
class ContainerUse:
    """Context manager that samples all nodes of a cluster periodically, in a thread."""

    cluster: ClusterAccess
    namespace: str
    most: dict[str, ContainerReading] = field(
        default_factory=dict
    )  # greatest memory use, by the container's name
    throttled_s: dict[str, float] = field(default_factory=dict)  # greatest, likewise
    latest: dict[tuple[str, str], ContainerReading] = field(
        default_factory=dict
    )  # by pod and container
    _limits: dict[tuple[str, str], float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(
            target=self._keep_looking, name="container use", daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def shares(self) -> Mapping[str, float]:
        """Return each container's greatest share of its limit; infinity without a limit."""
        return {name: one.share for name, one in tuple(self.most.items())}  # the thread adds to it

    def shares_now(self, pods: Collection[str]) -> Mapping[str, float]:
        """Return each container's share of its limit now, the greatest of these pods."""
        found: dict[str, float] = {}
        for one in tuple(self.latest.values()):
            if one.pod in pods:
                found[one.container] = max(found.get(one.container, 0.0), one.share)
        return found

    def has_seen_since(self, moment_s: float, pods: Collection[str]) -> bool:
        """Return whether cAdvisor has sampled all these pods after a moment."""
        seen = {one.pod for one in tuple(self.latest.values()) if one.taken_at_s > moment_s}
        return seen.issuperset(pods)

    def look(self) -> None:
        """Read every node once; skip nodes that do not answer."""
        nodes = json.loads(self.cluster.kubectl("get", "nodes", "--output", "json"))["items"]
        pods = self.cluster.kubectl("get", "pods", "-n", self.namespace, "--output", "json")
        self._limits |= container_limits(json.loads(pods))
        for node in nodes:
            path = f"/api/v1/nodes/{node['metadata']['name']}/proxy/metrics/cadvisor"
            try:
                text = self.cluster.kubectl("get", "--raw", path)
            except CommandFailed:
                continue  # the node is restarting
            for one in read_cadvisor(text, self.namespace):
                self._note(with_limit(one, self._limits))

    def _note(self, one: ContainerReading) -> None:
        name = one.container
        known = self.most.get(name)
        if known is None or one.working_set_bytes > known.working_set_bytes:
            self.most[name] = one
        self.throttled_s[name] = max(self.throttled_s.get(name, 0.0), one.throttled_s)
        self.latest[one.pod, one.container] = one

    def _keep_looking(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self.look()
            except CommandFailed:
                continue  # the API server is away
