"""What a world's nodes draw above idle under full load: means by zone, and merit orders."""

import numpy as np

from greensched_policies.costs.cost import CURVE_POINTS, Floats, load_watts
from greensched_policies.costs.merit_order import merit_order
from greensched_simulator.world.world import World


def busy_watts(world: World) -> tuple[Floats, Floats]:
    """Return the mean watts above idle of a core and of a GPU at full load, by zone, [Z].

    A GPU's are its whole range: a job draws its `gpu_ratio` of them.
    """
    nodes, zones = world.nodes, len(world.zones)

    def mean(watts: Floats, amounts: Floats) -> Floats:
        sums = [np.bincount(nodes.zone, each, zones).astype(float) for each in (watts, amounts)]
        found: Floats = sums[0] / np.maximum(sums[1], 1.0)
        return found

    core_w, gpu_w = _of_nodes(world)
    return mean(core_w, nodes.cpu_capacity), mean(gpu_w, nodes.gpu_capacity)


def run_watts(world: World) -> Floats:
    """Return the watts that one worker of each job adds in each zone, by its mean node, [J,Z]."""
    jobs, (core_w, gpu_w) = world.jobs, busy_watts(world)
    drawn_gpus = jobs.gpus * jobs.gpu_ratio
    return np.multiply.outer(jobs.cpu_cores, core_w) + np.multiply.outer(drawn_gpus, gpu_w)


def merit_orders(world: World) -> Floats:
    """Return the merit order of each zone's cores, and of its GPUs, [2,Z,MERIT_STEPS]."""
    nodes = world.nodes
    sizes, speeds = (nodes.cpu_capacity, nodes.gpu_capacity), nodes.speed
    found = [
        [
            merit_order(watts[own], size[own], speeds[own], nodes.cpu_capacity[own])
            for own in (nodes.zone == zone for zone in range(len(world.zones)))
        ]
        for watts, size in zip(_of_nodes(world), sizes, strict=True)
    ]
    return np.array(found)


def _of_nodes(world: World) -> tuple[Floats, Floats]:
    """Return the watts above idle of each node's CPUs, and of its GPUs, [N], with its PUE."""
    nodes = world.nodes
    first, cores = nodes.curve_class.astype(np.int64) * CURVE_POINTS, nodes.cpu_capacity
    core_w = load_watts(world.curve_watts, first, cores, cores, world.utilisation_ratio)
    gpu_w = (nodes.gpu_peak_w - nodes.gpu_idle_w) * nodes.gpu_capacity
    return core_w * nodes.pue, gpu_w * nodes.pue
