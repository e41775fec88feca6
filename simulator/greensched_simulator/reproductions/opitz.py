"""The energy cost of suspending a training: measured at the wall, and by a model of its phases.

Opitz, master's thesis (code Quacck/master-thesis): RoBERTa on a Ryzen 5 1600X with a GTX 1070, run
in one piece, or stopped in the second of five epochs after or before its checkpoint, then resumed.
A file of measurements ends with the recording's begin and end, and its samples are evenly spaced.
The recording begins 30 s before the program. Energy is that of the machine, idle power
included, from the program's start to its `Exit`.
"""

from collections.abc import Mapping
from math import sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import stats

from greensched_core.errors import BadInput
from greensched_policies.costs.cost import Floats
from greensched_simulator.phase_jobs.phases import Phase, PhasedJob, duration_s, spent
from greensched_simulator.reproductions.tables import ComparedLine

NEEDS_DATA = True
TITLE = "Opitz, suspending a training (master's thesis, 2024)"
FOLDER = "opitz-thesis-power"
BEFORE_PROGRAM_S = 30.0  # recorded before and after the program by `pinpoint`
RUNS = {  # the beginnings of the published runs' file names
    "full": ("roberta_full_",),
    "saved": ("roberta_stop_after_saving_", "roberta_continue_after_saving_"),
    "unsaved": ("roberta_stop_without_saving_", "roberta_continue_after_not_saving_"),
}

# From the thesis: mean and standard deviation of ten runs each, kJ, and penalty against the first.
MEASURED_KJ = {"full": (12.97, 0.04), "saved": (13.94, 0.10), "unsaved": (15.72, 0.07)}
PENALTY_PERCENT = {"saved": 7.5, "unsaved": 21.2}
PENALTY_TOLERANCE = 2.0  # points
MODEL_TOLERANCE_KJ = 0.1  # the model's error according to the thesis
RUNS_OF_THE_THESIS = 10
CONFIDENCE = 0.95

EPOCH = (
    Phase("train", 8.17, 221.9),
    Phase("evaluate", 1.54, 134.0),
    Phase("save", 2.72, 105.1, is_checkpoint=True),
)
JOB = PhasedJob(  # the phases in the thesis
    (Phase("start", 5.34, 59.9), Phase("imports", 12.36, 53.8), Phase("load data", 5.75, 63.2)),
    EPOCH * 5,
)
# The event that ends each phase of the startup.
_STARTUP_ENDS = (
    ("start", "start program"), ("imports", "after load data"), ("load data", "Start training"),
)  # fmt: skip


class Recording(NamedTuple):
    """One run's measurements; times are seconds since the epoch."""

    begin_s: float
    end_s: float
    power_w: Floats  # [S] samples, evenly spaced
    events: tuple[tuple[float, str], ...]

    def energy_j(self, from_s: float, until_s: float) -> float:
        """Return the energy between two moments; a sample holds until the next."""
        edges = np.linspace(self.begin_s, self.end_s, self.power_w.size + 1)
        within_s = np.diff(np.clip(edges, from_s, until_s))
        return float(self.power_w @ within_s)

    def at_s(self, event: str) -> float:
        """Return the time of the first event of a name; raise BadInput without one."""
        for moment_s, name in self.events:
            if name == event:
                return moment_s
        raise BadInput(f"the recording from {self.begin_s:.0f} on has no event {event!r}")

    @property
    def program_j(self) -> float:
        """Return the machine's energy while the program ran."""
        return self.energy_j(self.begin_s + BEFORE_PROGRAM_S, self.at_s("Exit"))


def reproduce(data: Path) -> list[ComparedLine]:
    """Return the thesis's figures and ours; raise BadInput if a file cannot be read."""
    recordings = {
        name: [_recordings(data / FOLDER, beginning) for beginning in beginnings]
        for name, beginnings in RUNS.items()
    }
    measured = {name: _mean_kj(parts) for name, parts in recordings.items()}
    counts = {name: len(parts[0]) for name, parts in recordings.items()}
    (resumed,) = recordings["saved"][1]
    return [*_measured_lines(measured, counts), *_model_lines(startup_of(resumed))]


def read_recording(measurements: Path) -> Recording:
    """Return a run from its two files; raise BadInput if they cannot be read."""
    events = measurements.with_name(measurements.name.replace(".measurements.", ".events."))
    try:
        values = [float(line) for line in measurements.read_text(encoding="utf-8").split()]
        pairs = [line.split(",", 1) for line in events.read_text(encoding="utf-8").splitlines()]
        found = tuple((float(moment), name.strip()) for moment, name in pairs)
    except (OSError, ValueError) as fault:
        raise BadInput(f"{measurements} or its events cannot be read: {fault}") from fault
    if len(values) < 3 or not values[-2] < values[-1]:
        raise BadInput(f"{measurements} does not end with the recording's begin and end")
    return Recording(values[-2], values[-1], np.array(values[:-2]) / 1000.0, found)


def startup_of(recording: Recording) -> tuple[Phase, ...]:
    """Return the measured phases before the training."""
    phases = []
    begin_s = recording.begin_s + BEFORE_PROGRAM_S
    for name, event in _STARTUP_ENDS:
        end_s = recording.at_s(event)
        length_s = end_s - begin_s
        phases.append(Phase(name, length_s, recording.energy_j(begin_s, end_s) / length_s))
        begin_s = end_s
    return tuple(phases)


def penalties_percent(job: PhasedJob) -> Mapping[str, float]:
    """Return the model's additional energy when stopped as in the thesis."""
    whole_j = spent(job).energy_j
    saved_s = duration_s(job.startup) + 2.0 * duration_s(EPOCH)
    unsaved_s = duration_s(job.startup) + duration_s(EPOCH) + EPOCH[0].duration_s
    return {
        name: 100.0 * (spent(job, (after_s,)).energy_j / whole_j - 1.0)
        for name, after_s in (("saved", saved_s), ("unsaved", unsaved_s))
    }


def _recordings(folder: Path, beginning: str) -> list[Recording]:
    files = sorted(folder.glob(f"{beginning}*.measurements.csv"))
    if not files:
        raise BadInput(f"{folder} has no file {beginning}*.measurements.csv")
    return [read_recording(file) for file in files]


def _mean_kj(parts: list[list[Recording]]) -> float:
    """Return the mean energy of runs that consist of several parts."""
    return sum(float(np.mean([one.program_j for one in part])) for part in parts) / 1000.0


def _measured_lines(measured: Mapping[str, float], counts: Mapping[str, int]) -> list[ComparedLine]:
    lines = []
    for name, (mean_kj, deviation_kj) in MEASURED_KJ.items():
        tolerance = _prediction_tolerance(deviation_kj, counts[name])
        lines.append(
            ComparedLine(f"measured, {name}", "energy, kJ", mean_kj, measured[name], tolerance)
        )
    for name, percent in PENALTY_PERCENT.items():
        ours = 100.0 * (measured[name] / measured["full"] - 1.0)
        lines.append(
            ComparedLine(f"measured, {name}", "penalty, %", percent, ours, PENALTY_TOLERANCE)
        )
    return lines


def _model_lines(restart: tuple[Phase, ...]) -> list[ComparedLine]:
    job = PhasedJob(JOB.startup, JOB.work, restart)
    full_kj, theirs_kj = spent(job).energy_j / 1000.0, MEASURED_KJ["full"][0]
    ours = penalties_percent(job)
    return [
        ComparedLine("phases, full", "energy, kJ", theirs_kj, full_kj, MODEL_TOLERANCE_KJ),
        *(
            ComparedLine(f"phases, {name}", "penalty, %", percent, ours[name], PENALTY_TOLERANCE)
            for name, percent in PENALTY_PERCENT.items()
        ),
    ]


def _prediction_tolerance(deviation: float, count: int) -> float:
    """Return half the 95 % prediction interval of the mean of `count` runs beyond the thesis's."""
    quantile = stats.t.ppf(0.5 + CONFIDENCE / 2.0, RUNS_OF_THE_THESIS - 1)
    return float(quantile * deviation * sqrt(1.0 / count + 1.0 / RUNS_OF_THE_THESIS))
