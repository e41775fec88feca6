"""Reads Kubernetes JSON into our values; decodes only the fields that we use.

Requests follow the scheduler's rule (k8s.io/component-helpers/resource/helpers.go). Containers and
restartable init containers add up. An ordinary init container counts if it requests more than that
sum. Pod-level requests replace the result, and overhead is added. A limit counts as a request where
none is given: the API server writes that into pods, but not into the pod templates of Jobs.
"""

from collections.abc import Callable, Mapping

import msgspec

from greensched_core import labels
from greensched_core.durations import parse_duration
from greensched_core.errors import BadInput
from greensched_core.quantities import parse_quantity
from greensched_core.quoting import quoted
from greensched_core.state import Workload

Quantities = dict[str, str]


class ObjectMeta(msgspec.Struct):
    """metadata of any object, with all labels and annotations."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class NodeSpec(msgspec.Struct):
    """spec of a Node."""

    unschedulable: bool = False


class NodeStatus(msgspec.Struct):
    """status of a Node."""

    allocatable: Quantities | None = None
    capacity: Quantities | None = None


class NodeObject(msgspec.Struct):
    """A Node as the API server writes it."""

    metadata: ObjectMeta
    spec: NodeSpec = msgspec.field(default_factory=NodeSpec)
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)


class PodAnnotations(msgspec.Struct):
    """Our annotations that placement reads; all others are skipped."""

    runtime: str | None = msgspec.field(default=None, name=labels.RUNTIME)
    policy: str | None = msgspec.field(default=None, name=labels.POLICY)
    decision: str | None = msgspec.field(default=None, name=labels.DECISION)


class OwnerReference(msgspec.Struct):
    """An entry of metadata.ownerReferences."""

    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class PodMeta(msgspec.Struct):
    """metadata of a Pod, Job or CronJob, without labels."""

    name: str = ""
    generateName: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    annotations: PodAnnotations | None = None
    ownerReferences: list[OwnerReference] | None = None

    @property
    def maker(self) -> OwnerReference | None:
        """The controller that created it; None if a user did."""
        return next((each for each in self.ownerReferences or () if each.controller), None)


class Resources(msgspec.Struct):
    """resources of a container or a pod."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Container(msgspec.Struct):
    """A container of a pod."""

    resources: Resources | None = None
    restartPolicy: str | None = None  # "Always" makes an init container a sidecar


class PodSpec(msgspec.Struct):
    """spec of a Pod."""

    nodeName: str | None = None
    schedulerName: str = ""
    containers: list[Container] | None = None
    initContainers: list[Container] | None = None
    overhead: Quantities | None = None
    resources: Resources | None = None


class PodStatus(msgspec.Struct):
    """status of a Pod."""

    phase: str = ""


class PodObject(msgspec.Struct):
    """A Pod as the API server and kube-scheduler write it."""

    metadata: PodMeta = msgspec.field(default_factory=PodMeta)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)


_RESOURCES = (labels.CPU, labels.MEMORY, labels.NVIDIA_GPU)
RequestedAmounts = tuple[float, float, float]  # cpu cores, memory bytes, GPUs
# Above any machine, and small enough that sums stay exact enough: a double holds 1e6 cores to 1e-10
# and 1e16 bytes to 2.
MOST: RequestedAmounts = (1e6, 1e16, 1e5)
_MOST_OF = dict(zip(_RESOURCES, MOST, strict=True))
MOST_FAULTS = 8  # of one object that are listed; the others are counted
_NOTHING: RequestedAmounts = (0.0, 0.0, 0.0)
_FINISHED = frozenset({"Succeeded", "Failed"})


def workload_of(pod: PodObject, runtime: str | None = None) -> Workload:
    """Return a pod's requests; a value that cannot be read counts as absent, with a fault.

    `runtime` replaces the pod's annotation.
    """
    faults: list[str] = []
    cpu_cores, memory_bytes, gpus = _requests(pod.spec, faults)
    return Workload(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name or pod.metadata.generateName,
        uid=pod.metadata.uid,
        cpu_cores=cpu_cores,
        memory_bytes=memory_bytes,
        gpus=gpus,
        scheduler=pod.spec.schedulerName,
        node=pod.spec.nodeName or "",
        is_finished=has_finished(pod),
        runtime_s=_runtime_s(runtime or declared_runtime(pod.metadata), faults),
        faults=_limited(faults),
    )


def has_finished(pod: PodObject) -> bool:
    """Return whether a pod has ended and holds no resources."""
    return pod.status.phase in _FINISHED


def allocatable(node: NodeObject) -> tuple[RequestedAmounts, tuple[str, ...]]:
    """Return what pods may use of a node, and faults; what cannot be read counts as 0."""
    faults: list[str] = []
    offered = node.status.allocatable or node.status.capacity
    if not offered:
        return _NOTHING, (
            "it reports neither allocatable nor capacity, so nothing can be placed there",
        )
    return _amounts(offered, "allocatable", faults), _limited(faults)


def _limited(faults: list[str]) -> tuple[str, ...]:
    if len(faults) <= MOST_FAULTS:
        return tuple(faults)
    return *faults[:MOST_FAULTS], f"and {len(faults) - MOST_FAULTS} more faults"


def _requests(spec: PodSpec, faults: list[str]) -> RequestedAmounts:
    total = _NOTHING
    for container in spec.containers or ():
        total = _each(_plus, total, _container(container, faults))
    sidecars, peak = _NOTHING, _NOTHING
    for container in spec.initContainers or ():
        asked = _container(container, faults)
        if container.restartPolicy == "Always":
            sidecars = _each(_plus, sidecars, asked)
            asked = sidecars
        else:
            asked = _each(_plus, sidecars, asked)
        peak = _each(max, peak, asked)
    total = _each(max, _each(_plus, total, sidecars), peak)
    if spec.resources and (named := spec.resources.requests):
        whole = _amounts(named, "spec.resources.requests", faults)
        total = (
            whole[0] if labels.CPU in named else total[0],
            whole[1] if labels.MEMORY in named else total[1],
            total[2],
        )
    if spec.overhead:
        total = _each(_plus, total, _amounts(spec.overhead, "spec.overhead", faults))
    return _each(min, total, MOST)


def _container(container: Container, faults: list[str]) -> RequestedAmounts:
    if container.resources is None:
        return _NOTHING
    requests, limits = container.resources.requests or {}, container.resources.limits or {}
    only_limited = {name: limit for name, limit in limits.items() if name not in requests}
    return _each(
        _plus, _amounts(requests, "requests", faults), _amounts(only_limited, "limits", faults)
    )


def _amounts(quantities: Mapping[str, str], where: str, faults: list[str]) -> RequestedAmounts:
    cpu, memory, gpu = (_amount(quantities, name, where, faults) for name in _RESOURCES)
    return cpu, memory, gpu


def _amount(quantities: Mapping[str, str], name: str, where: str, faults: list[str]) -> float:
    text = quantities.get(name)
    if text is None:
        return 0.0
    try:
        amount = parse_quantity(text)
    except BadInput as fault:
        faults.append(f"{where}.{name}: {fault}")
        return 0.0
    if amount < 0:
        faults.append(f"{where}.{name}: {quoted(text)} is negative")
        return 0.0
    if amount > _MOST_OF[name]:
        faults.append(f"{where}.{name}: {quoted(text)} is more than any machine has")
        return 0.0
    return amount


def declared_runtime(meta: PodMeta) -> str | None:
    """Return the runtime that an object's annotation declares."""
    return None if meta.annotations is None else meta.annotations.runtime


def _runtime_s(text: str | None, faults: list[str]) -> float | None:
    if text is None:
        return None
    try:
        runtime_s = parse_duration(text)
    except BadInput as fault:
        faults.append(f"annotation {labels.RUNTIME}: {fault}")
        return None
    if runtime_s <= 0:
        faults.append(f"annotation {labels.RUNTIME}: {quoted(text)} is not above zero")
        return None
    return runtime_s


def _plus(one: float, other: float) -> float:
    return one + other


def _each(
    combine: Callable[[float, float], float], one: RequestedAmounts, other: RequestedAmounts
) -> RequestedAmounts:
    return (
        combine(one[0], other[0]),
        combine(one[1], other[1]),
        combine(one[2], other[2]),
    )
