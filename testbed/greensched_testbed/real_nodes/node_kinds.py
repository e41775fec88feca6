"""The labels of real nodes: two grid zones, as in `deploy/kind/cluster.yaml`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from greensched_core import labels


@dataclass(frozen=True)
class NodeKind:
    """A node's labels; the cluster chooses its name."""

    labels: Mapping[str, str] = field(default_factory=dict)


def in_two_zones(count: int) -> tuple[NodeKind, ...]:
    """Return `count` equal nodes, alternately in Germany and Sweden."""
    kinds = (
        _in("DE", "europe-west3", "europe-west3-a"),
        _in("SE-SE3", "europe-north1", "europe-north1-a"),
    )
    return tuple(kinds[index % len(kinds)] for index in range(count))


def _in(grid_zone: str, region: str, zone: str) -> NodeKind:
    return NodeKind(
        {
            labels.GRID_ZONE: grid_zone,
            labels.TOPOLOGY_REGION: region,
            labels.TOPOLOGY_ZONE: zone,
            labels.INSTANCE_TYPE: "m5.2xlarge",
        }
    )
