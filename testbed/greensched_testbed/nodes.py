"""Creates nodes without machines: simulated by kwok, or plain objects without heartbeats."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from greensched_core import labels
from greensched_core.api_paths import NODES
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_testbed.errors import NotReady

_AT_ONCE = 8  # httpx compares all pairs of connections on every request: 32 are 4 times slower
_FIRST_POLL_S, _LONGEST_POLL_S = 0.1, 2.0  # listing a thousand nodes takes the server a second


@dataclass(frozen=True, slots=True)
class EqualNodes:
    """Equal nodes, named `<name_prefix>-0` and so on; an empty string sets no label."""

    count: int
    name_prefix: str
    cpu_cores: float
    memory_bytes: float
    gpus: int = 0
    gpu_model: str = ""  # as NVIDIA's feature discovery writes it: NVIDIA-A100-SXM4-80GB
    grid_zone: str = ""
    topology_zone: str = ""
    power_model: str = ""
    instance_type: str = ""
    pods: int = 250
    extra_labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Return the nodes' names."""
        return tuple(f"{self.name_prefix}-{index}" for index in range(self.count))


def node_object(name: str, group: EqualNodes, *, is_ready: bool) -> dict[str, Any]:
    """Return the Node as a JSON value; with `is_ready` it has the condition Ready."""
    capacity = {
        labels.CPU: f"{round(group.cpu_cores * 1000)}m",
        labels.MEMORY: str(round(group.memory_bytes)),
        "pods": str(group.pods),
    }
    if group.gpus:
        capacity[labels.NVIDIA_GPU] = str(group.gpus)
    status: dict[str, Any] = {"capacity": capacity, "allocatable": capacity}
    if is_ready:
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "Testbed"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": _labels(name, group),
            "annotations": dict(group.annotations),
        },
        "status": status,
    }


async def create_nodes(
    client: ApiClient,
    groups: Iterable[EqualNodes],
    *,
    plain: bool = False,
    may_exist: bool = False,
) -> tuple[str, ...]:
    """Create the groups' nodes and return their names.

    Without `plain`, kwok makes them Ready a moment later (see `wait_until_ready`). With it they are
    schedulable on return, without the not-ready taint; they stay so only in a control plane without
    the node lifecycle controller. With `may_exist`, existing nodes stay unchanged. Raises
    ApiUnavailable if one cannot be created.
    """
    pairs = [(name, group) for group in groups for name in group.names()]
    gate = asyncio.Semaphore(_AT_ONCE)

    async def create(name: str, group: EqualNodes) -> None:
        async with gate:
            body = msgspec.json.encode(node_object(name, group, is_ready=plain))
            try:
                stored = _decode(await client.create(NODES, body))
            except ApiUnavailable as fault:
                if may_exist and fault.status == 409:
                    return
                raise
            if plain and stored.spec.taints:  # set by the admission plugin TaintNodesByCondition
                await client.patch(f"{NODES}/{name}", b'{"spec":{"taints":null}}')

    async with asyncio.TaskGroup() as tasks:
        for name, group in pairs:
            tasks.create_task(create(name, group))
    return tuple(name for name, _ in pairs)


async def delete_nodes(client: ApiClient, names: Iterable[str]) -> None:
    """Delete nodes by name; ignore those already deleted."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def delete(name: str) -> None:
        async with gate:
            try:
                await client.delete(f"{NODES}/{name}")
            except ApiUnavailable as fault:
                if fault.status != 404:
                    raise

    async with asyncio.TaskGroup() as tasks:
        for name in names:
            tasks.create_task(delete(name))


async def wait_until_ready(
    client: ApiClient, names: Iterable[str], timeout_s: float = 60.0
) -> None:
    """Wait until the nodes are Ready and untainted; raise NotReady after `timeout_s`."""
    awaited = set(names)
    deadline = time.monotonic() + timeout_s
    pause_s = _FIRST_POLL_S
    while awaited:
        async for page in client.pages(NODES):
            for raw in page.items:
                node = _decode(raw)
                if node.is_ready():
                    awaited.discard(node.metadata.name)
        if awaited and time.monotonic() > deadline:
            first, *others = sorted(awaited)
            named = ", ".join([first, *others[:4]])
            more = f" and {len(others) - 4} more" if len(others) > 4 else ""
            raise NotReady(
                f"{len(awaited)} nodes are not Ready after {timeout_s:.0f} s: {named}{more}; "
                f"`kubectl describe node {first}` shows why"
            )
        if awaited:
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, _LONGEST_POLL_S)


def _labels(name: str, group: EqualNodes) -> dict[str, str]:
    given = {
        labels.GRID_ZONE: group.grid_zone,
        labels.TOPOLOGY_ZONE: group.topology_zone,
        labels.POWER_MODEL: group.power_model,
        labels.INSTANCE_TYPE: group.instance_type,
        labels.GPU_PRODUCT: group.gpu_model if group.gpus else "",
    }
    return {
        labels.HOSTNAME: name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        **{key: value for key, value in given.items() if value},
        **group.extra_labels,
    }


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _NodeStatus(msgspec.Struct):
    conditions: list[_Condition] = []


class _NodeSpec(msgspec.Struct):
    taints: list[msgspec.Raw] = []


class _NodeMetadata(msgspec.Struct):
    name: str


class _Node(msgspec.Struct):
    metadata: _NodeMetadata
    spec: _NodeSpec = msgspec.field(default_factory=_NodeSpec)
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)

    def is_ready(self) -> bool:
        conditions = self.status.conditions
        ready = any(each.type == "Ready" and each.status == "True" for each in conditions)
        return ready and not self.spec.taints


_decode = msgspec.json.Decoder(_Node).decode
