"""What looking at more nodes is worth: energy and carbon of the places found, against pods bound.

The pods ask for 100m each; what they draw is the power curves' watts above those of the empty
cluster, at the utilisation that the extender assumes, and carbon is that of the static table.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from benchmarks import throughput
from greensched_core.errors import BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_core.objects import NodeObject
from greensched_core.power.catalogue import PowerCatalogue
from greensched_core.signals.static import StaticZones, load_static_zones
from greensched_core.state import Node
from greensched_extender.node_reading import NodeReader
from greensched_extender.settings import ExtenderSettings
from greensched_testbed.controlplane import ControlPlane

_CORES_A_POD = 0.1
_decode = msgspec.json.Decoder(NodeObject).decode


@dataclass(frozen=True)
class Sampled:
    """One turn: pods bound per second, and what all of them draw together."""

    percentage: int
    pods_per_s: float
    power_w: float  # above the empty cluster, without PUE
    carbon_g_per_h: float
    nodes_used: int


def measure(plane: ControlPlane, kind: str, pods: int, percentage: int) -> Sampled:
    """Bind `pods` pods with a percentageOfNodesToScore and reckon what they draw."""
    rate, pods_by_node = throughput.placed_turn(plane, kind, pods, percentage)
    nodes = asyncio.run(_nodes(plane))
    watts = {name: _added_watts(nodes[name], count) for name, count in pods_by_node.items()}
    carbon = _carbon(nodes)
    return Sampled(
        percentage=percentage,
        pods_per_s=rate,
        power_w=sum(watts.values()),
        carbon_g_per_h=sum(power_w / 1e3 * carbon[name] for name, power_w in watts.items()),
        nodes_used=len(pods_by_node),
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
