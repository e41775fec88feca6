"""Data moved between zones for a run's jobs, derived from their run segments."""

import numpy as np

from greensched_policies.billing.transfers import NO_TRANSFERS, Transfers
from greensched_policies.costs.cost import Integers
from greensched_simulator.arrays.moving import J_PER_BYTE, LATENCY_S, PRICE_PER_BYTE, S_PER_BYTE
from greensched_simulator.runs.schedule import Schedule
from greensched_simulator.world.world import World


def brought(world: World, schedule: Schedule) -> Integers:
    """Return the indices of the run segments whose data was brought from another zone."""
    ran = schedule.run_segments
    is_apart = ran.data_zone != world.nodes.zone[ran.node]
    return np.flatnonzero(
        (world.jobs.data_bytes[ran.job] > 0.0) & is_apart & (world.links.size > 0)
    )


def transfers_of(world: World, schedule: Schedule) -> Transfers:
    """Return the transfers of a schedule, in the order of its run segments.

    Data comes in the last seconds before its worker runs, or would have run. A transfer that was
    stopped before its end is billed for the part that had come.
    """
    if world.links.size == 0:
        return NO_TRANSFERS
    ran, came = schedule.run_segments, brought(world, schedule)
    link = world.links[:, ran.data_zone[came], world.nodes.zone[ran.node[came]]]
    size = world.jobs.data_bytes[ran.job[came]]
    whole_s = link[LATENCY_S] + size * link[S_PER_BYTE]
    ready_s, until_s = ran.ready_s[came], ran.start_s[came]
    start_s = np.clip(ready_s - whole_s, ran.placed_s[came], until_s)
    share = np.ones(came.size)
    is_cut = until_s < ready_s
    share[is_cut] = (until_s - start_s)[is_cut] / whole_s[is_cut]
    return Transfers(
        ran.node[came],
        ran.data_zone[came],
        start_s,
        until_s,
        share * size * link[J_PER_BYTE],
        share * size * link[PRICE_PER_BYTE],
    )
