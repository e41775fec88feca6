"""The demo's cluster: 60 nodes of three hardware generations in three grid zones."""

from collections.abc import Mapping
from dataclasses import replace

from greensched_simulator.formats.synthetic_grid import SHAPES
from greensched_testbed.node_generations import (
    GENERATION_LABEL,
    GENERATIONS,
    GPUS_OF_A_NODE,
    Generation,
    equal_nodes,
)
from greensched_testbed.nodes import EqualNodes

DEMO_ZONES = tuple(replace(shape, name=f"DEMO-{shape.name}") for shape in SHAPES.values())
NODE_COUNT = len(DEMO_ZONES) * sum(each.plain_nodes + each.gpu_nodes for each in GENERATIONS)


def demo_node_groups() -> list[EqualNodes]:
    """Return the groups of the demo's nodes."""
    groups = []
    for zone in DEMO_ZONES:
        for generation in GENERATIONS:
            for gpus, count in (
                (0, generation.plain_nodes),
                (GPUS_OF_A_NODE, generation.gpu_nodes),
            ):
                kind = "gpu" if gpus else "cpu"
                groups.append(equal_nodes(generation, zone.name, count, gpus, f"-{kind}"))
    return groups


def generations_by_node() -> Mapping[str, Generation]:
    """Return each node's generation."""
    by_name = {each.name: each for each in GENERATIONS}
    return {
        name: by_name[group.extra_labels[GENERATION_LABEL]]
        for group in demo_node_groups()
        for name in group.names()
    }
