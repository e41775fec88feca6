"""A service whose replicas and requests are told in a line each."""

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np

from greensched_simulator.testing.small_worlds import Fields, make_world
from greensched_simulator.world.request_curve import Curve
from greensched_simulator.world.response_times import Times
from greensched_simulator.world.services import ServiceRows
from greensched_simulator.world.world import World

HOUR = 3600.0
EXPONENTIAL = Times(0.5, 1.0, 0.5, 1.0)  # one place answers two a second


def world_of(
    rates_per_s: Sequence[float],
    lives: Sequence[tuple[float, float]],
    *,
    nodes: Sequence[Fields] = ({},),
    startup_s: float = 0.0,
    jobs: Sequence[Fields] = (),
    replica: Fields = MappingProxyType({}),
) -> World:
    """Return a world of one service with slots of an hour and a replica from when to when."""
    begins_s = np.array([HOUR * slot for slot in range(len(rates_per_s) + 1)])
    rows = [
        {"arrival_s": begin_s, "runtime_s": end_s - begin_s, "leaves_at_s": end_s, **replica}
        for begin_s, end_s in lives
    ]
    world = make_world([*rows, *jobs], nodes)
    service = ServiceRows(
        "web", Curve(begins_s, np.array(rates_per_s) * HOUR), np.full(len(rates_per_s), 1.0),
        EXPONENTIAL, 1.0, 0.9, 1, startup_s, np.arange(len(lives)), world.nodes.speed,
    )  # fmt: skip
    return world._replace(services=(service,), length_s=float(begins_s[-1]))
