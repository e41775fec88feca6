"""Data of jobs, which lies in one zone: what it takes to bring it to another, and what rules see.

A job that is placed in another zone than its data first waits for it, on its node, which idles.
From then on the data lies there.
"""

from typing import Any, NamedTuple

import numpy as np

from greensched_policies.billing.transfers import TransferColumns
from greensched_policies.costs.cost import JOULES_PER_KWH, JOULES_PER_MWH, Floats
from greensched_simulator.arrays.grid_table import CARBON
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.compiling.compiled import fast, inlined

# Rows of the table of links, [4,Z,Z]: from the first zone to the second.
LATENCY_S, S_PER_BYTE, J_PER_BYTE, PRICE_PER_BYTE = range(4)
NO_LINKS = np.zeros((4, 0, 0))  # where no job has data that would have to be brought anywhere


class Data(NamedTuple):
    """What one worker of a job reads."""

    size_bytes: float  # 0: nothing that lies anywhere
    zone: int  # where it lies


def most_moving_s(links: Floats, jobs: JobArrays, zone: int | None = None) -> Floats:
    """Return the longest that bringing each job's data to a zone takes, or to any, [J].

    Data of a job that can be suspended may come from wherever it ran.
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
    """Return how long it takes to bring data to a zone: latency, then byte after byte."""
    if links.shape[1] == 0 or data.size_bytes == 0.0 or data.zone == zone:
        return 0.0
    per_byte_s = links[S_PER_BYTE, data.zone, zone]
    return float(links[LATENCY_S, data.zone, zone] + data.size_bytes * per_byte_s)


@inlined
def moving_seen(links: Floats, data: Data, zone: int, means: Floats) -> TransferColumns:
    """Return what it takes to bring data to a zone, each column a number; all 0 where it lies.

    `means` are those of each zone's carbon and price over the run, [2,Z].
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
    """Return what bringing data to each zone makes of its carbon and price over a run, [2,Z].

    The carbon by a factor, the price by what is added to it, both for each joule of a run that is
    expected to take `run_j` there, [Z]; no columns where nothing is brought.
    """
    if links.shape[1] == 0:
        nothing: Floats = links[0]  # which has no columns: no array is made
        return nothing
    if data.size_bytes == 0.0:
        return np.empty((2, 0))
    surcharge = np.empty((2, run_j.size))
    for zone in range(run_j.size):
        surcharge[0, zone], surcharge[1, zone] = 1.0, 0.0
        if data.zone != zone and run_j[zone] > 0.0:
            surcharge[0, zone] += data.size_bytes * links[J_PER_BYTE, data.zone, zone] / run_j[zone]
            money = data.size_bytes * links[PRICE_PER_BYTE, data.zone, zone]
            surcharge[1, zone] = money / (run_j[zone] / JOULES_PER_MWH)
    return surcharge
