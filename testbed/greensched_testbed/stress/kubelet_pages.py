"""Reads CPU time from kubelets through the API server; no Prometheus is needed.

It reads `/metrics/resource` (pkg/kubelet/metrics/collectors/resource_metrics.go) or, if a kubelet
has no such page, `/stats/summary` (k8s.io/kubelet/pkg/apis/stats/v1alpha1). Both contain CPU time
since a start, and the sample's time. The user needs the right to `get` `nodes/proxy`.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from greensched_core.api_paths import NODES
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.metering.energy_pieces import EnergyPoint
from greensched_core.signals.timestamps import parse_timestamp

RESOURCE, SUMMARY = "/proxy/metrics/resource", "/proxy/stats/summary"
_NODE, _POD, _CONTAINER = (
    "node_cpu_usage_seconds",
    "pod_cpu_usage_seconds",
    "container_cpu_usage_seconds",
)
PodName = tuple[str, str]  # a pod's namespace and name


@dataclass(frozen=True, slots=True)
class CpuPage:
    """CPU seconds of a node and its pods since their starts; times in seconds since the epoch."""

    node: EnergyPoint | None
    pods: Mapping[PodName, EnergyPoint]


async def read_page(client: ApiClient, node: str, now_s: float) -> CpuPage:
    """Return the page of a node's kubelet; `now_s` replaces times that the page lacks.

    Raises ApiUnavailable if it does not answer, and BadInput if the answer is not such a page.
    """
    try:
        return parse_resource(await client.get(f"{NODES}/{node}{RESOURCE}"), now_s)
    except ApiUnavailable as fault:
        if fault.status != 404:
            raise
    return parse_summary(await client.get(f"{NODES}/{node}{SUMMARY}"))


def parse_resource(body: bytes, now_s: float) -> CpuPage:
    """Parse a /metrics/resource page; raise BadInput if it is not one."""
    node: EnergyPoint | None = None
    pods: dict[PodName, EnergyPoint] = {}
    parts: dict[PodName, list[EnergyPoint]] = {}
    try:
        for family in text_string_to_metric_families(body.decode()):
            for sample in family.samples:
                at_s = now_s if sample.timestamp is None else float(sample.timestamp)
                point = at_s, sample.value
                pod = sample.labels.get("namespace", ""), sample.labels.get("pod", "")
                if family.name == _NODE:
                    node = point
                elif family.name == _POD:
                    pods[pod] = point
                elif family.name == _CONTAINER:
                    parts.setdefault(pod, []).append(point)
    except (ValueError, UnicodeDecodeError) as fault:
        raise BadInput(f"no metrics page from the kubelet: {fault}") from fault
    for pod, points in parts.items():
        pods.setdefault(pod, (max(at for at, _ in points), math.fsum(cpu for _, cpu in points)))
    return CpuPage(node, pods)


class _Cpu(msgspec.Struct):
    time: str
    usageCoreNanoSeconds: int | None = None


class _NodeStats(msgspec.Struct):
    cpu: _Cpu | None = None


class _Reference(msgspec.Struct):
    name: str
    namespace: str


class _PodStats(msgspec.Struct):
    podRef: _Reference
    cpu: _Cpu | None = None


class _Summary(msgspec.Struct):
    node: _NodeStats
    pods: list[_PodStats] = []


def parse_summary(body: bytes) -> CpuPage:
    """Parse a /stats/summary page; raise BadInput if it is not one."""
    try:
        summary = msgspec.json.decode(body, type=_Summary)
        pods = {
            (pod.podRef.namespace, pod.podRef.name): point
            for pod in summary.pods
            for point in _points(pod.cpu)
        }
        return CpuPage(next(_points(summary.node.cpu), None), pods)
    except (msgspec.MsgspecError, BadInput) as fault:
        raise BadInput(f"no summary from the kubelet: {fault}") from fault


def _points(cpu: _Cpu | None) -> Iterator[EnergyPoint]:
    if cpu is not None and cpu.usageCoreNanoSeconds is not None:
        yield parse_timestamp(cpu.time), cpu.usageCoreNanoSeconds / 1e9
