"""How much of its limit each container takes, by what the kubelets' cAdvisor says meanwhile."""

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from prometheus_client.parser import text_string_to_metric_families

from greensched_testbed.end_to_end.clusters import Cluster
from greensched_testbed.errors import CommandFailed

_EVERY_S = 5.0  # cAdvisor itself looks every 10 to 20 s
_USED = "container_memory_working_set_bytes"
_LIMIT = "container_spec_memory_limit_bytes"


@dataclass(frozen=True, slots=True)
class Reading:
    """One container's memory at one time, in bytes; a limit of 0 is none."""

    container: str
    working_set_bytes: float
    limit_bytes: float


def read_cadvisor(text: str, namespace: str) -> Iterator[Reading]:
    """Yield the containers of a namespace in what a kubelet answers on /metrics/cadvisor.

    Raises ValueError where it is no such text.
    """
    found: dict[tuple[str, str], dict[str, float]] = {}
    lines = [line for line in text.splitlines() if line.startswith((_USED, _LIMIT))]
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        for sample in family.samples:
            said = sample.labels
            if said.get("namespace") == namespace and said.get("container"):
                key = said["pod"], said["container"]
                found.setdefault(key, {})[sample.name] = sample.value
    for (_, container), values in found.items():
        if _USED in values:
            yield Reading(container, values[_USED], values.get(_LIMIT, 0.0))


@dataclass
class ContainerMemory:
    """Looks at all nodes of a cluster again and again while it is entered; in a thread."""

    cluster: Cluster
    namespace: str
    most: dict[str, Reading] = field(default_factory=dict)  # by container's name
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._keep_looking, name="memory", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def shares(self) -> Mapping[str, float]:
        """Return the greatest share of its limit that each container took; infinity without one."""
        return {
            name: one.working_set_bytes / one.limit_bytes if one.limit_bytes else float("inf")
            for name, one in tuple(self.most.items())  # the thread adds to it
        }

    def look(self) -> None:
        """Ask every node once; one that does not answer is left out."""
        nodes = json.loads(self.cluster.kubectl("get", "nodes", "--output", "json"))["items"]
        for node in nodes:
            path = f"/api/v1/nodes/{node['metadata']['name']}/proxy/metrics/cadvisor"
            try:
                text = self.cluster.kubectl("get", "--raw", path)
            except CommandFailed:
                continue  # a node that is being restarted
            for one in read_cadvisor(text, self.namespace):
                known = self.most.get(one.container)
                if known is None or one.working_set_bytes > known.working_set_bytes:
                    self.most[one.container] = one

    def _keep_looking(self) -> None:
        while not self._stop.wait(_EVERY_S):
            try:
                self.look()
            except CommandFailed:
                continue  # the API server is away
