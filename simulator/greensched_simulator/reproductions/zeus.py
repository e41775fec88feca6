"""Throughput and power of GPUs under power caps, from Zeus's measured training runs.

You, Chung, Chowdhury, "Zeus: Understanding and Optimizing GPU Energy Consumption of DNN Training",
NSDI 2023; the power traces of its artifact, ml-energy/zeus. Each configuration (data set, network,
batch size, optimizer) is compared with itself at its highest limit. It counts only if it is hungry
there: a cap has no effect on work that never reaches it. The paper does not print the known
medians; they were computed from its traces before, and are computed again here.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from greensched_simulator.formats.trace_rows import read_table, refusal, require_columns, rows_of
from greensched_simulator.formats.workload import RowFault
from greensched_simulator.reproductions.tables import ComparedLine

NEEDS_DATA = True
TITLE = "Zeus, GPU power caps (You et al., NSDI 2023)"
HUNGRY = 0.75  # least share of its highest limit that a hungry configuration draws there
FOLDER = "zeus-power-cap"
TOLERANCE = 0.0005  # the figures are rounded to three decimals

# By limit in watts: throughput, and if known power and energy per unit of work, each relative to
# the highest limit.
PUBLISHED: dict[str, dict[int, tuple[float, ...]]] = {
    "v100": {
        100: (0.571, 0.448, 0.785), 125: (0.725, 0.549, 0.742), 150: (0.860, 0.652, 0.765),
        175: (0.913, 0.743, 0.813), 200: (0.950, 0.831, 0.874), 225: (0.981,),
    },
    "a40": {
        125: (0.405,), 150: (0.606, 0.551, 0.946), 175: (0.819, 0.659, 0.796),
        200: (0.912, 0.717, 0.794), 225: (0.968, 0.812, 0.840), 250: (0.983,),
    },
    "rtx6000": {
        100: (0.430,), 125: (0.722, 0.525, 0.730), 150: (0.837, 0.616, 0.741),
        175: (0.900, 0.708, 0.787), 200: (0.944, 0.795, 0.851), 225: (0.972,),
    },
    "p100": {},
}  # fmt: skip
HUNGRY_CONFIGURATIONS = {"v100": 28, "a40": 21, "rtx6000": 25, "p100": 0}
_COLUMNS = ("dataset", "network", "batch_size", "optimizer")


class ZeusMeasurement(NamedTuple):
    """One configuration at one limit."""

    epoch_s: float
    power_w: float  # mean


class Capped(NamedTuple):
    """Medians at one limit, relative to each configuration at its highest limit."""

    throughput: float
    power: float
    energy_per_work: float
    configurations: int  # measured at this limit


Configuration = tuple[str, ...]
Runs = Mapping[Configuration, Mapping[int, ZeusMeasurement]]  # by limit in watts


def reproduce(data: Path) -> list[ComparedLine]:
    """Return the known medians and ours; raise BadInput if a file cannot be read."""
    lines = []
    for gpu, published in PUBLISHED.items():
        hungry = hungry_runs(read_runs(data / FOLDER / f"summary_power_{gpu}.csv"))
        kept = float(HUNGRY_CONFIGURATIONS[gpu])
        lines.append(ComparedLine(gpu, "hungry configurations", kept, float(len(hungry)), 0.0))
        for limit_w, known in published.items():
            lines += _lines(f"{gpu} {limit_w} W", known, capped(hungry, limit_w))
    return lines


def read_runs(path: Path) -> Runs:
    """Return a GPU's runs; raise BadInput that lists faulty rows."""
    table = read_table(path)
    require_columns(table, (*_COLUMNS, "power_limit", "time_per_epoch", "average_power"))
    runs: dict[Configuration, dict[int, ZeusMeasurement]] = defaultdict(dict)
    faults: list[RowFault] = []
    for row in rows_of(table):
        configuration = tuple(row.text(column) for column in _COLUMNS)
        limit_w = row.whole("power_limit")
        if limit_w in runs[configuration]:
            row.fault(f"{' '.join(configuration)} was measured at {limit_w} W before")
        runs[configuration][limit_w] = ZeusMeasurement(
            row.figure("time_per_epoch", above=0.0), row.figure("average_power", above=0.0)
        )
        faults.extend(row.faults)
    if faults:
        raise refusal(path, faults, "take the file as it was published")
    return runs


def hungry_runs(runs: Runs) -> Runs:
    """Return the configurations that draw enough power at their highest limit for a cap to bind."""
    return {
        configuration: by_limit
        for configuration, by_limit in runs.items()
        if by_limit[max(by_limit)].power_w >= HUNGRY * max(by_limit)
    }


def capped(runs: Runs, limit_w: int) -> Capped:
    """Return the medians at a limit; raise ValueError if there is no measurement at it."""
    pairs = [
        (by_limit[limit_w], by_limit[max(by_limit)])
        for by_limit in runs.values()
        if limit_w in by_limit
    ]
    if not pairs:
        raise ValueError(f"nothing was measured at {limit_w} W")
    throughput = [full.epoch_s / run.epoch_s for run, full in pairs]
    power = [run.power_w / full.power_w for run, full in pairs]
    energy = [watts / speed for watts, speed in zip(power, throughput, strict=True)]
    return Capped(median(throughput), median(power), median(energy), len(pairs))


def _lines(case: str, known: Sequence[float], ours: Capped) -> list[ComparedLine]:
    figures = ("throughput", "power", "energy per work")
    return [
        ComparedLine(case, figure, theirs, found, TOLERANCE)
        for figure, theirs, found in zip(figures, known, ours, strict=False)
    ]
