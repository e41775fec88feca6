"""GAIA's time shifting on 1,000 jobs of Alibaba's PAI trace, in six regions.

Hanafy, Liang, Bashir, Irwin, Shenoy, "Going Green for Less Green: Optimizing the Cost of Reducing
Cloud Carbon Emissions", ASPLOS 2024; code umassos/GAIA. Its artifact works in ticks of 5 s: no
capacity limit, no idle power, one watt per core. Jobs under 2 h may wait 6 h, all others 24 h. A
policy estimates each runtime as the mean of the job's queue. Lowest-Slot, Lowest-Window and
Carbon-Time are the catalogue's rules; Ecovisor and Wait-Awhile pause jobs and are defined here.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats, Integers
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.rules.catalogue import WHEN_RULES
from greensched_simulator.formats.grid_files import (
    CARBON_LIMITS_G_PER_KWH,
    WantedColumn,
    read_series,
)
from greensched_simulator.formats.traces import load_trace
from greensched_simulator.reproductions.tables import ComparedLine

NEEDS_DATA = True
TITLE = "GAIA, pai_1k, queues 6x24 (Hanafy et al., ASPLOS 2024)"
TICK_S = 5.0
HOUR = 720  # ticks
SHORT = 2 * HOUR  # shorter jobs are in the short queue
WAIT = {"short": 6 * HOUR, "long": 24 * HOUR}
DAY = 24 * HOUR
AT_ONCE = (
    1024  # jobs whose starts are compared together; more do not fit into the processor's cache
)
FIRST_HOUR, HOURS = 24_544, 720  # rows of the carbon files: from 2023-10-20 16:00 UTC on
ECOVISOR_PERCENTILE = 30

TOLERANCES = (0.0005, 0.01)  # share of carbon, hours
# From the authors' code, run again: carbon relative to no wait, and mean wait in hours. The
# last two policies' waits are means over jobs; the artifact averages over pieces.
PUBLISHED: dict[str, dict[str, tuple[float, float]]] = {
    "CA-ON": {
        "lowest-slot": (0.7682, 5.05), "lowest-window": (0.7094, 5.61),
        "carbon-time": (0.7148, 4.66), "ecovisor": (0.7131, 6.11), "wait-awhile": (0.5582, 6.76),
    },
    "AU-NSW": {
        "lowest-slot": (0.8567, 5.64), "lowest-window": (0.7489, 5.37),
        "carbon-time": (0.7571, 4.40), "ecovisor": (0.7210, 6.43), "wait-awhile": (0.6441, 6.65),
    },
    "US-CAL-CISO": {
        "lowest-slot": (0.8892, 5.64), "lowest-window": (0.8209, 5.84),
        "carbon-time": (0.8273, 4.70), "ecovisor": (0.8049, 6.12), "wait-awhile": (0.7573, 7.14),
    },
    "GB": {
        "lowest-slot": (0.8736, 4.80), "lowest-window": (0.8455, 5.38),
        "carbon-time": (0.8533, 4.77), "ecovisor": (0.8770, 6.34), "wait-awhile": (0.7895, 6.52),
    },
    "US-TEX-ERCO": {
        "lowest-slot": (0.9381, 5.18), "lowest-window": (0.9119, 5.69),
        "carbon-time": (0.9217, 4.33), "ecovisor": (0.8984, 6.16), "wait-awhile": (0.8604, 6.64),
    },
    "DE-LU": {
        "lowest-slot": (0.9504, 5.35), "lowest-window": (0.9167, 6.29),
        "carbon-time": (0.9290, 4.93), "ecovisor": (0.9277, 5.92), "wait-awhile": (0.8605, 7.24),
    },
}  # fmt: skip


class GaiaJobs(NamedTuple):
    """The trace in ticks, [J]."""

    arrival: Integers
    length: Integers
    cpus: Floats


class Shifted(NamedTuple):
    """The carbon and waits of jobs under a policy, [J]."""

    carbon: Floats  # intensity summed over the ticks run, per core
    wait: Floats  # ticks from arrival to finish, minus the length


TickRun = tuple[int, int]  # first tick, ticks


class Carbon:
    """A zone's hourly intensity over the ticks of the trace."""

    def __init__(self, hourly: Floats) -> None:
        self.hourly = hourly
        self._sums = np.concatenate([[0.0], np.cumsum(hourly)]) * HOUR

    def at(self, tick: Integers) -> Floats:
        """Return the intensity at each tick."""
        found: Floats = self.hourly[np.minimum(tick // HOUR, self.hourly.size - 1)]
        return found

    def over(self, begin: Integers, length: Integers | int) -> Floats:
        """Return the intensity summed over `length` ticks from each `begin` on."""
        return self._until(begin + length) - self._until(begin)

    def pieces(self, begin: int, length: int) -> tuple[Integers, Integers, Floats]:
        """Return first tick, ticks and intensity of each hour that an interval touches."""
        end = min(begin + length, self.hourly.size * HOUR)
        edges = np.arange(begin // HOUR + 1, -(-end // HOUR)) * HOUR
        first = np.concatenate([[begin], edges])
        return first, np.diff(np.append(first, end)), self.at(first)

    def _until(self, tick: Integers) -> Floats:
        hour = np.minimum(tick // HOUR, self.hourly.size - 1)
        found: Floats = self._sums[hour] + (tick - hour * HOUR) * self.hourly[hour]
        return found


def reproduce(data: Path) -> list[ComparedLine]:
    """Return the published figures and ours; raise BadInput if a file cannot be read."""
    jobs = read_jobs(data / "gaia-cluster-traces" / "pai_1k.csv.gz")
    lines = []
    for zone, published in PUBLISHED.items():
        carbon = Carbon(read_hours(data, zone))
        base = float(jobs.cpus @ carbon.over(jobs.arrival, jobs.length))
        for name, paper in published.items():
            shifted = shift(name, jobs, carbon)
            ours = float(jobs.cpus @ shifted.carbon) / base, float(shifted.wait.mean()) / HOUR
            for figure, theirs, found, tolerance in zip(
                ("carbon ÷ no wait", "mean wait, h"), paper, ours, TOLERANCES, strict=True
            ):
                lines.append(ComparedLine(f"{zone} {name}", figure, theirs, found, tolerance))
    return lines


def read_jobs(path: Path) -> GaiaJobs:
    """Return the trace's jobs in whole ticks."""
    tasks = load_trace(path, {"time_unit": "s"}).tasks
    return GaiaJobs(
        np.array([int(task.arrival_s // TICK_S) for task in tasks]),
        np.array([int(task.runtime_s // TICK_S) for task in tasks]),
        np.array([task.cpu_cores for task in tasks]),
    )


def read_hours(data: Path, zone: str) -> Floats:
    """Return the intensity of the 720 hours of the artifact."""
    return read_column(data, zone)[FIRST_HOUR : FIRST_HOUR + HOURS]


def read_column(data: Path, zone: str) -> Floats:
    """Return the intensity of all hours of 2021 to 2023."""
    series = read_series(
        data / "sustain-cluster-carbon" / f"{zone}_2021-2023_hourly.csv.gz",
        WantedColumn("datetime_utc", "ci_lca_g_per_kwh", CARBON_LIMITS_G_PER_KWH, 1.0, is_utc=True),
    )
    return series.values


def shift(name: str, jobs: GaiaJobs, carbon: Carbon) -> Shifted:
    """Return the jobs' carbon and waits under the policy `name`, without a capacity limit."""
    if name in WHEN_RULES:
        start = started(name, jobs, carbon)
        return Shifted(carbon.over(start, jobs.length), (start - jobs.arrival).astype(float))
    runs = paused(name, jobs, carbon)
    taken = [float(carbon.over(*np.array(each).T).sum()) for each in runs]
    end = np.array([first + ticks for *_, (first, ticks) in runs])
    return Shifted(np.array(taken), (end - jobs.arrival - jobs.length).astype(float))


def waits_of(jobs: GaiaJobs) -> Integers:
    """Return the ticks that each job may wait, [J]."""
    return np.where(jobs.length < SHORT, WAIT["short"], WAIT["long"])


def started(name: str, jobs: GaiaJobs, carbon: Carbon) -> Integers:
    """Return each job's start by a rule of the catalogue, [J]."""
    start = jobs.arrival.copy()
    is_short = jobs.length < SHORT
    for queue, members in (("short", is_short), ("long", ~is_short)):
        expected = int(jobs.length[members].mean()) if members.any() else 0
        for some in np.array_split(np.flatnonzero(members), 1 + members.sum() // AT_ONCE):
            arrival = jobs.arrival[some]
            start[some] = _started(name, arrival, expected, WAIT[queue], carbon)
    return start


def paused(name: str, jobs: GaiaJobs, carbon: Carbon) -> list[list[TickRun]]:
    """Return each job's run segments under Ecovisor or Wait-Awhile."""
    pause = {"ecovisor": _ecovisor, "wait-awhile": _wait_awhile}[name]
    return [
        _joined(pause(int(arrival), int(length), int(wait), carbon))
        for arrival, length, wait in zip(jobs.arrival, jobs.length, waits_of(jobs), strict=True)
    ]


def _joined(runs: list[TickRun]) -> list[TickRun]:
    """Return runs in order of time, with adjacent runs joined."""
    joined: list[TickRun] = []
    for first, ticks in sorted(runs):
        if joined and sum(joined[-1]) == first:
            joined[-1] = joined[-1][0], joined[-1][1] + ticks
        elif ticks:
            joined.append((first, ticks))
    return joined


def _started(name: str, arrival: Integers, expected: int, wait: int, carbon: Carbon) -> Integers:
    """Return the starts that a rule of the catalogue chooses for jobs of one queue."""
    hours = np.arange(wait // HOUR + 1)
    if name == "lowest-slot":  # now, or at a full hour
        starts = (arrival[:, None] // HOUR + hours) * HOUR
        starts[:, 0] = arrival
    else:
        starts = arrival[:, None] + hours * HOUR
    run = carbon.over(starts, expected) / expected
    nothing = np.ones(starts.shape)
    slots = SlotColumns(
        wait_s=TICK_S * (starts - arrival[:, None]).astype(np.float64),
        runtime_s=np.full(starts.shape, float(expected * TICK_S)),
        carbon_at_start=carbon.at(starts),
        carbon_over_run=run,
        price_at_start=nothing,
        price_over_run=nothing,
        weighted_over_run=run,
        busiest_over_run=0.0 * nothing,
        completion=0.0 * nothing,
    )
    cost = WHEN_RULES[name](slots)
    chosen: Integers = starts[np.arange(arrival.size), np.argmin(cost, axis=1)]
    return chosen


def _ecovisor(arrival: int, length: int, wait: int, carbon: Carbon) -> list[TickRun]:
    """Run while the intensity is below the 30th percentile of the day after arrival.

    After `wait` ticks of waiting a job runs at any intensity: Souza et al., "Ecovisor", ASPLOS
    2023, as in GAIA's artifact.
    """
    _, ticks, values = carbon.pieces(arrival, DAY)
    threshold = np.percentile(np.repeat(values, ticks), ECOVISOR_PERCENTILE)
    left, waited, runs = length, 0, list[TickRun]()
    for first, ticks_here, value in zip(*carbon.pieces(arrival, length + wait), strict=True):
        idle = 0 if value < threshold else min(int(ticks_here), wait - waited)
        run = min(left, int(ticks_here) - idle)
        waited += idle
        left -= run
        runs.append((int(first) + idle, run))
        if left == 0:
            break
    return runs


def _wait_awhile(arrival: int, length: int, wait: int, carbon: Carbon) -> list[TickRun]:
    """Run in the cleanest ticks that the job may use, the earliest of equal ones.

    Wiesner et al., "Let's Wait Awhile", Middleware 2021, interruptible; pausing is free.
    """
    first, ticks, values = carbon.pieces(arrival, length + wait)
    left, runs = length, list[TickRun]()
    for place in np.argsort(values, kind="stable"):
        run = min(left, int(ticks[place]))
        left -= run
        runs.append((int(first[place]), run))
        if left == 0:
            break
    return runs
