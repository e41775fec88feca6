"""Runtime, node power and node energy at a lower CPU frequency, measured on ARCHER2.

Slurm's ElapsedRaw and ConsumedEnergyRaw of EPCCed/archer2-frequency-benchmarks (GitHub), summed up
here: nodes of two EPYC 7742, at the default (2.25 GHz with turbo) and at a fixed 2.0 GHz. Published
at 1.5 GHz: VASP, OpenSBLI, GROMACS and CASTEP then took more energy than at 2.0 (service news,
12 December 2022). Each program has two parameters in the model: its frequency sensitivity and the
share of its watts that follows the clock.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from greensched_policies.costs.capping import cpu_power, cpu_speed
from greensched_simulator.reproductions.tables import NOT_PUBLISHED, ComparedLine

NEEDS_DATA = False
TITLE = "ARCHER2, CPU frequency (EPCC, 2022 and 2023)"
TOLERANCE = 0.03

# With turbo a node runs at about 2.7 GHz: HPL takes 1.33 and LAMMPS 1.36 to 1.37 times as long at
# a fixed 2.0 GHz, and no program can take longer than the ratio of the frequencies.
FREQUENCY_2_0 = 0.74
FREQUENCY_1_5 = FREQUENCY_2_0 * 1.5 / 2.0
IDLE_W = 230.0  # an idle node: Jackson, Simpson and Turner on ARCHER2's power


class Program(NamedTuple):
    """A program's parameters."""

    sensitivity: float
    clocked: float


class FrequencyRun(NamedTuple):
    """Means over runs of a program: seconds and watts of a node, by default and at 2.0 GHz."""

    program: str
    default_s: float
    slowed_s: float
    default_w: float
    slowed_w: float
    takes_more_at_1_5: float = NOT_PUBLISHED  # 1.0: energy at 1.5 GHz was above that at 2.0


PROGRAMS = {
    "HPL": Program(1.0, 0.92),
    "LAMMPS": Program(1.0, 0.98),
    "GROMACS": Program(0.6, 0.7),
    "ONETEP": Program(0.26, 0.79),
    "CASTEP": Program(0.22, 0.57),
}
# Runs of each: three, five, two, four, two, five.
MEASURED = {
    "HPL": FrequencyRun("HPL", 3842.0, 5125.0, 513.0, 358.0),
    "LAMMPS ethanol": FrequencyRun("LAMMPS", 95.6, 129.6, 504.0, 342.0),
    "LAMMPS ethanol, long": FrequencyRun("LAMMPS", 1350.0, 1853.0, 517.0, 350.0),
    "GROMACS": FrequencyRun("GROMACS", 97.0, 117.0, 534.0, 407.0, 1.0),
    "ONETEP hBN": FrequencyRun("ONETEP", 3036.0, 3317.0, 506.0, 376.0),
    "CASTEP al3x3": FrequencyRun("CASTEP", 170.6, 184.0, 486.0, 399.0, 1.0),
}


def reproduce(data: Path | None = None) -> list[ComparedLine]:
    """Return the measured figures and the model's, relative to the default frequency."""
    return [line for case, run in MEASURED.items() for line in _lines(case, run)]


def runtime(program: Program, frequency: float) -> float:
    """Return a program's runtime at a share of the default frequency, relative to the default."""
    return 1.0 / float(cpu_speed(frequency, program.sensitivity))


def power(program: Program, frequency: float, default_w: float) -> float:
    """Return a node's watts, idle ones included, relative to `default_w` at the default."""
    above_w = (default_w - IDLE_W) * float(cpu_power(frequency, program.clocked))
    return (IDLE_W + above_w) / default_w


def energy(program: Program, frequency: float, default_w: float) -> float:
    """Return a node's energy for the same work, relative to the default."""
    return runtime(program, frequency) * power(program, frequency, default_w)


def _lines(case: str, run: FrequencyRun) -> Iterator[ComparedLine]:
    program = PROGRAMS[run.program]
    longer, lower = run.slowed_s / run.default_s, run.slowed_w / run.default_w
    ours = (
        runtime(program, FREQUENCY_2_0),
        power(program, FREQUENCY_2_0, run.default_w),
        energy(program, FREQUENCY_2_0, run.default_w),
    )
    figures = ("runtime at 2.0 GHz", "power at 2.0 GHz", "energy at 2.0 GHz")
    for figure, theirs, found in zip(figures, (longer, lower, longer * lower), ours, strict=True):
        yield ComparedLine(case, figure, theirs, found, TOLERANCE)
    takes_more = energy(program, FREQUENCY_1_5, run.default_w) > ours[2]
    yield ComparedLine(
        case, "more energy at 1.5 than at 2.0 GHz", run.takes_more_at_1_5, float(takes_more), 0.0
    )
