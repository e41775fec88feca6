"""Effect of the scheduler's profile: energy and carbon of placements, and pods bound per second.

It compares the share of nodes scored, and the weight of the extender's score.

The pods request 4 cores each: a thousand of them fill the 62 cheapest nodes, so that good places
get rare. Their power is that of the power curves above the empty cluster, at the extender's assumed
utilisation. Carbon is that of the static table.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from benchmarks import throughput
from benchmarks.bench_cluster import Profile
from greensched_core.errors import BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.signals.static import StaticZones, load_static_zones
from greensched_core.state import Node
from greensched_extender.settings import ExtenderSettings
from greensched_testbed.controlplane import ControlPlane

_CORES_A_POD = 4
_decode = msgspec.json.Decoder(NodeObject).decode


# By name in the results: the kind of extender, and the profile.
TURNS = {
    "none": ("none", Profile()),
    "none_upstream": ("none", Profile(upstream_scores=True)),
    "onnx": ("onnx", Profile()),
    "onnx_10pct": ("onnx", Profile(percentage=10)),
    "onnx_50pct": ("onnx", Profile(percentage=50)),
    "onnx_100pct": ("onnx", Profile(percentage=100)),
    "onnx_weight1": ("onnx", Profile(weight=1)),
    "onnx_upstream_weight1": ("onnx", Profile(weight=1, upstream_scores=True)),
    "onnx_upstream": ("onnx", Profile(upstream_scores=True)),
}


@dataclass(frozen=True)
class Sampled:
    """One turn: pods bound per second, and the power and carbon of all pods."""

    pods_per_s: float
    power_w: float  # above the empty cluster, without PUE
    carbon_g_per_h: float
    nodes_used: int


def measure(plane: ControlPlane, turn: str, pods: int) -> Sampled:
    """Bind `pods` pods in one of the `TURNS` and compute their power and carbon."""
    kind, profile = TURNS[turn]
    ran = throughput.one_turn(plane, kind, pods, profile, cpu=str(_CORES_A_POD))
    nodes = asyncio.run(_nodes(plane))
    watts = {name: _added_watts(nodes[name], count) for name, count in ran.pods_by_node.items()}
    carbon = _carbon(nodes)
    return Sampled(
        pods_per_s=ran.pods_per_s,
        power_w=sum(watts.values()),
        carbon_g_per_h=sum(power_w / 1e3 * carbon[name] for name, power_w in watts.items()),
        nodes_used=len(ran.pods_by_node),
    )


def _added_watts(node: Node, pods: int) -> float:
    ratio = ExtenderSettings().utilisation_ratio
    return node.curve.at(pods * _CORES_A_POD * ratio / node.cpu_cores) - node.curve.idle_w


def _carbon(nodes: Mapping[str, Node]) -> Mapping[str, float]:
    zones = load_static_zones()
    return {name: _grams_per_kwh(zones, node.zone) for name, node in nodes.items()}


def _grams_per_kwh(zones: StaticZones, zone: str) -> float:
    found = zones.find(zone)
    if found is None or found.carbon_g_per_kwh is None:
        raise BadInput(f"the static table has no carbon intensity of {zone}")
    return found.carbon_g_per_kwh


async def _nodes(plane: ControlPlane) -> dict[str, Node]:
    reader = NodeReader(PowerCatalogue(), {})
    nodes = {}
    async with ApiClient(plane.access) as client:
        async for page in client.pages("/api/v1/nodes"):
            for raw in page.items:
                node, _ = reader.read(_decode(raw))
                nodes[node.name] = node
    return nodes
