"""Transfers of jobs' data between zones: what they take, and what rules see of them.

A job that is placed in another zone than its data first waits for it on its node, which idles. From
then on the data lies there.
"""

from typing import Any, NamedTuple

import numpy as np

from greensched_core.units import JOULES_PER_KWH
from greensched_policies.billing.transfers import TransferColumns
from greensched_policies.compiling.compiled import fast, inlined
from greensched_policies.costs.cost import JOULES_PER_MWH, Floats
from greensched_policies.library.grid_table import CARBON
from greensched_simulator.arrays.jobs import JobArrays

# Rows of the table of links, [4,Z,Z]: from the first zone to the second.
LATENCY_S, S_PER_BYTE, J_PER_BYTE, PRICE_PER_BYTE = range(4)
NO_LINKS = np.zeros((4, 0, 0))  # for worlds in which no job has data in a zone


class Data(NamedTuple):
    """The data that one worker of a job reads."""

    size_bytes: float  # 0: no data that lies in a zone
    zone: int  # where it lies


def most_moving_s(links: Floats, jobs: JobArrays, zone: int | None = None) -> Floats:
    """Return the longest transfer of each job's data to `zone`, by default to any zone, [J].

    The data of a job that can be suspended may come from any zone in which it ran.
    """
    if links.size == 0:
        return np.zeros(jobs.data_bytes.size)
    there = links if zone is None else links[:, :, [zone]]
    latency_s, per_byte_s = there[LATENCY_S], there[S_PER_BYTE]
    took_s = latency_s + np.multiply.outer(jobs.data_bytes, per_byte_s)  # [J, from, to]
    from_home_s = took_s[np.arange(jobs.data_bytes.size), jobs.data_zone].max(axis=1)
    longest_s = np.where(np.isinf(jobs.save_every_s), from_home_s, took_s.max(axis=(1, 2)))
    return np.where(jobs.data_bytes > 0.0, longest_s, 0.0)


@inlined
def moving_s(links: Floats, data: Data, zone: int) -> float:
    """Return how long the transfer of data to a zone takes: latency plus size by bandwidth."""
    if links.shape[1] == 0 or data.size_bytes == 0.0 or data.zone == zone:
        return 0.0
    per_byte_s = links[S_PER_BYTE, data.zone, zone]
    return float(links[LATENCY_S, data.zone, zone] + data.size_bytes * per_byte_s)


@inlined
def moving_seen(links: Floats, data: Data, zone: int, means: Floats) -> TransferColumns:
    """Return what the transfer of data to a zone takes, each column a number; 0 within its zone.

    `means` are each zone's mean carbon and price over the run, [2,Z].
    """
    nothing: Any = 0.0
    if data.zone == zone:
        return TransferColumns(nothing, nothing, nothing, nothing)
    took_s: Any = moving_s(links, data, zone)
    energy_j = data.size_bytes * links[J_PER_BYTE, data.zone, zone]
    here_g = means[CARBON, data.zone]
    here_g = means[CARBON, zone] if np.isnan(here_g) else here_g
    intensity = 0.5 * (here_g + means[CARBON, zone])
    return TransferColumns(
        took_s,
        energy_j,
        data.size_bytes * links[PRICE_PER_BYTE, data.zone, zone],
        energy_j * (1.0 / JOULES_PER_KWH) * intensity,
    )


@fast
def transfer_surcharges(links: Floats, data: Data, run_j: Floats) -> Floats:
    """Return how a data transfer to each zone raises carbon and price over a run there, [2,Z].

    The first row is a factor of the carbon, the second is added to the price. Both spread the
    transfer over the `run_j` joules expected of a run, [Z]; less than one counts as one. No columns
    without data to transfer.
    """
    if links.shape[1] == 0:
        nothing: Floats = links[0]  # has no columns; saves making an array
        return nothing
    if data.size_bytes == 0.0:
        return np.empty((2, 0))
    surcharge = np.empty((2, run_j.size))
    for zone in range(run_j.size):
        surcharge[0, zone], surcharge[1, zone] = 1.0, 0.0
        if data.zone != zone and run_j[zone] > 0.0:
            spread_j = max(run_j[zone], 1.0)  # dividing by almost nothing would overflow
            surcharge[0, zone] += data.size_bytes * links[J_PER_BYTE, data.zone, zone] / spread_j
            money = data.size_bytes * links[PRICE_PER_BYTE, data.zone, zone]
            surcharge[1, zone] = money / (spread_j / JOULES_PER_MWH)
    return surcharge
