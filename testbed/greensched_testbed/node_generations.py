"""Generations of machines whose power is known, and simulated nodes of them.

The curves are of real machines (SPECpower_ssj2008 as named), set by annotation. One core does the
same work on each, so that only power, carbon and price differ.
"""

from dataclasses import dataclass

from greensched_core import labels
from greensched_core.power.curves import PowerCurve
from greensched_testbed.nodes import EqualNodes

GIB = 2.0**30
GENERATION_LABEL = "demo.greensched.io/generation"
GPUS_OF_A_NODE = 4  # GPUs on each node that has any


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of machines: its curve, its GPUs, and its number of nodes in a zone."""

    name: str
    cpu_cores: float  # logical, as Kubernetes counts them
    memory_bytes: float
    curve: PowerCurve
    gpu_product: str  # as NVIDIA's feature discovery writes it
    plain_nodes: int  # in each zone, without GPUs
    gpu_nodes: int  # in each zone


# Curves: SPECpower_ssj2008; the GPUs' power is in the power catalogue (docs/power.md).
GENERATIONS = (
    Generation(
        name="2012",
        cpu_cores=24,
        memory_bytes=96 * GIB,
        # IBM System x3550 M3, Xeon X5675, as quoted by CloudSim.
        curve=PowerCurve((58.4, 98, 109, 118, 128, 140, 153, 170, 189, 205, 222)),
        gpu_product="Tesla-V100-SXM2-16GB",
        plain_nodes=7,
        gpu_nodes=2,
    ),
    Generation(
        name="2021",
        cpu_cores=128,
        memory_bytes=512 * GIB,
        # EPYC 7763, one socket (SPECpower_ssj2008).
        curve=PowerCurve((56.8, 100, 116, 130, 143, 162, 191, 211, 231, 250, 268)),
        gpu_product="NVIDIA-A100-SXM4-40GB",
        plain_nodes=4,
        gpu_nodes=2,
    ),
    Generation(
        name="2023",
        cpu_cores=192,
        memory_bytes=768 * GIB,
        # EPYC 9654, one socket: idle 73 W, full 360 W, between them the shape of 2021–22.
        curve=PowerCurve.from_idle_and_peak(73.0, 360.0),
        gpu_product="NVIDIA-H100-80GB-HBM3",
        plain_nodes=3,
        gpu_nodes=2,
    ),
)

# Zones of the shipped static table, so that carbon and price are known without any signal.
REAL_ZONES = ("FR", "NL", "DE")


def mixed_nodes(count: int) -> list[EqualNodes]:
    """Return groups with `count` nodes in total for experiments: each generation in each real zone.

    A smaller count gives the first nodes of a larger one. All nodes have GPUs.
    """
    kinds = [
        (generation, REAL_ZONES[(row + shift) % len(REAL_ZONES)])
        for shift in range(len(REAL_ZONES))
        for row, generation in enumerate(GENERATIONS)
    ]
    share, rest = divmod(count, len(kinds))
    return [
        equal_nodes(generation, zone, share + (place < rest), GPUS_OF_A_NODE)
        for place, (generation, zone) in enumerate(kinds)
    ]


def equal_nodes(
    generation: Generation, zone: str, count: int, gpus: int, suffix: str = ""
) -> EqualNodes:
    """Return nodes of one generation in one zone; `suffix` ends the prefix of their names."""
    watts = ",".join(f"{watts:.1f}" for watts in generation.curve.watts)
    return EqualNodes(
        count=count,
        name_prefix=f"{zone.lower()}-{generation.name}{suffix}",
        cpu_cores=generation.cpu_cores,
        memory_bytes=generation.memory_bytes,
        gpus=gpus,
        gpu_model=generation.gpu_product,
        grid_zone=zone,
        topology_zone=zone.lower(),
        extra_labels={GENERATION_LABEL: generation.name},
        annotations={labels.POWER_CURVE_WATTS: watts},
    )
