"""What was brought where in a run, for its jobs: told from their stretches."""

import numpy as np

from greensched_policies.cost import Integers
from greensched_policies.transfers import NO_TRANSFERS, Transfers
from greensched_simulator.moving import J_PER_BYTE, LATENCY_S, PRICE_PER_BYTE, S_PER_BYTE
from greensched_simulator.schedule import Schedule
from greensched_simulator.world import World


def brought(world: World, schedule: Schedule) -> Integers:
    """Return the places of the stretches for which data was brought from another zone."""
    ran = schedule.stretches
    is_apart = ran.data_zone != world.nodes.zone[ran.node]
    return np.flatnonzero(
        (world.jobs.data_bytes[ran.job] > 0.0) & is_apart & (world.links.size > 0)
    )


def transfers_of(world: World, schedule: Schedule) -> Transfers:
    """Return the transfers of a schedule, in the order of its stretches.

    Data comes in the last seconds before its worker runs. What was stopped before is billed for the
    part that had come by then.
    """
    if world.links.size == 0:
        return NO_TRANSFERS
    ran, came = schedule.stretches, brought(world, schedule)
    link = world.links[:, ran.data_zone[came], world.nodes.zone[ran.node[came]]]
    size = world.jobs.data_bytes[ran.job[came]]
    whole_s = link[LATENCY_S] + size * link[S_PER_BYTE]
    start_s = np.maximum(ran.start_s[came] - whole_s, ran.placed_s[came])
    share = np.ones(came.size)
    part_s = ran.start_s[came] - start_s
    np.divide(part_s, whole_s, out=share, where=whole_s > 0.0)
    return Transfers(
        ran.node[came],
        ran.data_zone[came],
        start_s,
        ran.start_s[came],
        share * size * link[J_PER_BYTE],
        share * size * link[PRICE_PER_BYTE],
    )
