"""GAIA with reserved cores: cheaper by the hour, and paid for whether or not they are used.

As in its artifact (see `gaia`), a job gets reserved cores only if they have room for all its cores;
otherwise it runs on demand. Freed cores serve from the next tick on. AllWait-Threshold starts a job
when it fits on them, and at the end of its wait at the latest. Res-First-Carbon-Time does the same,
at Carbon-Time's start at the latest. The oldest job comes first.
"""

import heapq
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_simulator.reproductions.gaia import (
    HOUR,
    Carbon,
    GaiaJobs,
    paused,
    read_hours,
    read_jobs,
    started,
    waits_of,
)
from greensched_simulator.reproductions.tables import ComparedLine

NEEDS_DATA = True
TITLE = "GAIA with nine reserved cores, pai_1k, AU-NSW (Hanafy et al., ASPLOS 2024)"
ZONE = "AU-NSW"
RESERVED = 9  # cores
PER_CORE_HOUR = 0.0624  # USD on demand
SHARE_OF_PRICE = 0.4  # of a reserved core, from the beginning to the last start
TOLERANCE = 0.002
# From the authors' code, run again: carbon and cost relative to starting at once, all on demand.
PUBLISHED: dict[str, tuple[float, float]] = {
    "no-wait": (1.0, 0.775), "all-wait-threshold": (0.995, 0.652),
    "res-first-carbon-time": (0.890, 0.712), "carbon-time": (0.757, 0.961),
    "ecovisor": (0.721, 0.894), "wait-awhile": (0.644, 0.939),
}  # fmt: skip


class RequestedRuns(NamedTuple):
    """Runs that request cores, [K] in ticks, in order of service."""

    first: Integers  # earliest start
    latest: Integers  # latest start, reserved or on demand
    length: Integers
    cpus: Floats


class ServedRuns(NamedTuple):
    """Start and kind of core of each requested run."""

    start: Integers  # [K]
    is_on_demand: Integers  # [K] 1 or 0


def reproduce(data: Path) -> list[ComparedLine]:
    """Return the published figures and ours; raise BadInput if a file cannot be read."""
    jobs = read_jobs(data / "gaia-cluster-traces" / "pai_1k.csv.gz")
    carbon = Carbon(read_hours(data, ZONE))
    base_g = float(jobs.cpus @ carbon.over(jobs.arrival, jobs.length))
    base_usd = float(jobs.cpus @ jobs.length) / HOUR * PER_CORE_HOUR
    lines = []
    for name, paper in PUBLISHED.items():
        requested = _requested(name, jobs, carbon)
        served = serve(requested, RESERVED)
        grams = float(requested.cpus @ carbon.over(served.start, requested.length))
        ours = grams / base_g, cost_usd(requested, served, RESERVED) / base_usd
        for figure, theirs, found in zip(("carbon", "cost"), paper, ours, strict=True):
            lines.append(
                ComparedLine(name, f"{figure} ÷ no wait, on demand", theirs, found, TOLERANCE)
            )
    return lines


def _requested(name: str, jobs: GaiaJobs, carbon: Carbon) -> RequestedRuns:
    """Return the runs for which a policy requests cores: jobs, or pieces of paused jobs."""
    if name in ("ecovisor", "wait-awhile"):
        pieces = [
            (first, ticks, cpus)
            for cpus, of_job in zip(jobs.cpus, paused(name, jobs, carbon), strict=True)
            for first, ticks in of_job
        ]
        first, length = (np.array([each[at] for each in pieces]) for at in (0, 1))
        requested = RequestedRuns(first, first, length, np.array([each[2] for each in pieces]))
    elif name == "all-wait-threshold":
        requested = RequestedRuns(
            jobs.arrival, jobs.arrival + waits_of(jobs), jobs.length, jobs.cpus
        )
    elif name == "no-wait":
        requested = RequestedRuns(jobs.arrival, jobs.arrival, jobs.length, jobs.cpus)
    else:
        start = started("carbon-time", jobs, carbon)
        first = jobs.arrival if name == "res-first-carbon-time" else start
        requested = RequestedRuns(first, start, jobs.length, jobs.cpus)
    order = np.argsort(requested.first, kind="stable")
    return RequestedRuns._make(column[order] for column in requested)


def serve(requested: RequestedRuns, reserved: int) -> ServedRuns:
    """Start each run once its cores are free among the reserved ones, or at its latest start."""
    start, is_on_demand = requested.latest.copy(), np.ones(requested.first.size, np.int64)
    free, waiting, came = float(reserved), list[int](), 0
    busy: list[tuple[int, float]] = []  # the tick at which cores become free, and their number
    moments = list({*requested.first.tolist(), *requested.latest.tolist()})
    heapq.heapify(moments)
    while moments:
        now = heapq.heappop(moments)
        while busy and busy[0][0] <= now:
            free += heapq.heappop(busy)[1]
        while came < requested.first.size and requested.first[came] <= now:
            waiting.append(came)
            came += 1
        for run in waiting:
            if requested.cpus[run] <= free:
                start[run], is_on_demand[run] = now, 0
                free -= float(requested.cpus[run])
                free_from = now + int(requested.length[run]) + 1
                heapq.heappush(busy, (free_from, float(requested.cpus[run])))
                heapq.heappush(moments, free_from)
        waiting = [run for run in waiting if is_on_demand[run] and requested.latest[run] > now]
    return ServedRuns(start, is_on_demand)


def cost_usd(requested: RequestedRuns, served: ServedRuns, reserved: int) -> float:
    """Return the cost of runs on demand, and of the reserved cores until the last start."""
    on_demand = float((requested.cpus * requested.length * served.is_on_demand).sum()) / HOUR
    paid_anyway = reserved * SHARE_OF_PRICE * int(served.start.max()) / HOUR
    return (on_demand + paid_anyway) * PER_CORE_HOUR
