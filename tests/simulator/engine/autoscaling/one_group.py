"""Worlds with one autoscaled group of equal nodes."""

from collections.abc import Sequence

from greensched_simulator.testing.small_worlds import Fields, make_world, with_autoscaling
from greensched_simulator.world.world import World

NODE: Fields = {
    "sleep_w": 5.0,
    "wake_s": 120.0,
    "wake_w": 300.0,
}  # of 10 cores and 64 GiB


def autoscaled(
    jobs: Sequence[Fields], nodes: int, min_nodes: int = 0, node: Fields = NODE
) -> World:
    """Return a world of these jobs and so many nodes."""
    return with_autoscaling(make_world(jobs, [node] * nodes), [0] * nodes, [min_nodes])
