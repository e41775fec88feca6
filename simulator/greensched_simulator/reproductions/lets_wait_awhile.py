"""Let's Wait Awhile: a nightly job that may move by hours, and a year of machine learning jobs.

Wiesner, Behnke, Scheinert, Gontarska, Thamsen, "Let's Wait Awhile: How Temporal Workload Shifting
Can Reduce Carbon Emissions in the Cloud", Middleware 2021; code dos-group/lets-wait-awhile. Slots
of half an hour in 2020, one watt per job, no capacity limit. The artifact's behaviour is kept,
including two errors. A window that would begin before the year drops its job, but the sum is still
divided by 365. A window includes its deadline's own slot, so even a job that may not be shifted may
start one slot late. Lowest-Slot and Lowest-Window are the rules of the catalogue; interruptible
jobs, which pause, are defined here.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
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
from greensched_simulator.reproductions.tables import ComparedLine

NEEDS_DATA = True
TITLE = "Let's Wait Awhile, scenarios I and II, 2020 (Wiesner et al., Middleware 2021)"
SLOT_S = 1800.0
HOUR = 2  # slots
DAY = 24 * HOUR
FIRST_S = datetime(2020, 1, 1, tzinfo=UTC).timestamp()
FIRST_WEEKDAY = 2  # the first of January 2020 was a Wednesday; Monday is 0
DAYS = 366
MONDAY, THURSDAY, SATURDAY, SUNDAY = 0, 3, 5, 6
OPENS, CLOSES = 9 * HOUR, 17 * HOUR  # slots of the day

NIGHTLY_RUNS = 365
NIGHTLY_SLOT = 1 * HOUR  # at 1:00
ML_JOBS = 3387
ML_WEEKDAYS = 262
ML_LENGTHS = range(4 * HOUR, 90 * HOUR)  # slots
ERROR_SEEDS = range(10)

FILES = {"DE": "ger_ci.csv.gz", "GB": "gb_ci.csv.gz", "FR": "fr_ci.csv.gz"}
TOLERANCE = 0.01  # g/kWh for the intensity at 1:00, else percentage points
# The figures of the next workday with an error of 5 % are from the authors' notebook; all others
# are from other code that ran the protocol before.
NIGHTLY_HOURS = (2, 4, 6, 8)
NIGHTLY_BASE = {"DE": 305.33, "GB": 184.10, "FR": 52.12}  # g/kWh
NIGHTLY_SAVED: dict[str, dict[float, tuple[float, ...]]] = {  # %, by forecast error, for each shift
    "DE": {0.0: (2.80, 3.97, 7.52, 13.76), 0.05: (1.40, 2.20, 5.46, 11.74)},
    "GB": {0.0: (6.81, 8.61, 9.12, 10.41), 0.05: (4.77, 6.30, 6.74, 7.95)},
    "FR": {0.0: (4.72, 6.09, 7.13, 7.79), 0.05: (3.00, 4.08, 5.00, 5.58)},
}
SAVED_ONE_SLOT_LATE = {"DE": 0.14, "GB": 0.21, "FR": 0.15}  # %
ML_SAVED: dict[str, dict[tuple[str, float], tuple[float, float]]] = {  # %: in one piece, in pieces
    "DE": {
        ("next workday", 0.0): (5.93, 8.16), ("next workday", 0.05): (5.91, 7.93),
        ("semi-weekly", 0.0): (14.13, 18.50), ("semi-weekly", 0.05): (14.11, 18.11),
    },
    "GB": {
        ("next workday", 0.0): (6.57, 9.23), ("next workday", 0.05): (6.56, 9.03),
        ("semi-weekly", 0.0): (14.75, 20.00), ("semi-weekly", 0.05): (14.73, 19.66),
    },
    "FR": {
        ("next workday", 0.0): (4.79, 6.22), ("next workday", 0.05): (4.77, 5.92),
        ("semi-weekly", 0.0): (11.15, 13.86), ("semi-weekly", 0.05): (11.12, 13.33),
    },
}  # fmt: skip


class MlJobs(NamedTuple):
    """The jobs of scenario II in slots since the year's beginning, [J]."""

    start: Integers  # without shifting
    length: Integers


def reproduce(data: Path) -> list[ComparedLine]:
    """Return the published figures and ours; raise BadInput if a file cannot be read."""
    jobs = ml_jobs()
    lines: list[ComparedLine] = []
    for zone, name in FILES.items():
        actual = read_slots(data / "lets-wait-awhile" / name)
        lines.extend(_nightly_lines(zone, actual))
        lines.extend(_ml_lines(zone, actual, jobs))
    return lines


def _nightly_lines(zone: str, actual: Floats) -> Iterator[ComparedLine]:
    base = nightly(actual, actual, 0)
    yield ComparedLine(f"{zone} I", "g/kWh at 1:00", NIGHTLY_BASE[zone], base, TOLERANCE)
    for error, published in NIGHTLY_SAVED[zone].items():
        for hours, theirs in zip(NIGHTLY_HOURS, published, strict=True):
            seen = forecasts(actual, error)
            shifted = np.mean([nightly(actual, forecast, hours * HOUR) for forecast in seen])
            case = f"{zone} I ±{hours} h, error {error:.0%}"
            yield ComparedLine(case, "saving, %", theirs, _saved(float(shifted), base), TOLERANCE)


def _ml_lines(zone: str, actual: Floats, jobs: MlJobs) -> Iterator[ComparedLine]:
    finish = jobs.start + jobs.length
    base = in_one_piece(jobs, finish, actual, actual)
    unmoved = float(_sum_over(actual, jobs.start, jobs.length).sum())
    theirs, ours = SAVED_ONE_SLOT_LATE[zone], _saved(base, unmoved)
    yield ComparedLine(f"{zone} II, one slot late at most", "saving, %", theirs, ours, TOLERANCE)
    for (deadline, error), published in ML_SAVED[zone].items():
        seen = forecasts(actual, error)
        until = DEADLINES[deadline](finish)
        for run, theirs in zip((in_one_piece, in_pieces), published, strict=True):
            shifted = np.mean([run(jobs, until, actual, forecast) for forecast in seen])
            case = f"{zone} II {deadline}, {run.__name__.replace('_', ' ')}, error {error:.0%}"
            yield ComparedLine(case, "saving, %", theirs, _saved(float(shifted), base), TOLERANCE)


def _saved(shifted: float, base: float) -> float:
    return 100.0 * (1.0 - shifted / base)


def read_slots(path: Path) -> Floats:
    """Return the intensity of each half hour from 2020 on, g/kWh, without the quarters between."""
    column = WantedColumn("Time", "Carbon Intensity", CARBON_LIMITS_G_PER_KWH, is_utc=True)
    series = read_series(path, column)
    times_s, values = series.times_s[:-1], series.values[:-1]  # the last is the end of the file
    found: Floats = values[(times_s >= FIRST_S) & (times_s % SLOT_S == 0.0)]
    return found


def forecasts(actual: Floats, error: float) -> list[Floats]:
    """Return forecasts, one per seed, whose error is a share of the series' mean.

    The error is the same for the whole series: it does not grow with the lead time.
    """
    if error == 0.0:
        return [actual]
    spread = error * float(actual.mean())
    return [
        actual + np.random.default_rng(seed).normal(0.0, spread, actual.size)
        for seed in ERROR_SEEDS
    ]


def ml_jobs() -> MlJobs:
    """Return scenario II's jobs: on workdays from 9:00 to 17:00, of 4 to 90 hours."""
    dice = np.random.default_rng(0)
    weekday = _weekday(np.arange(DAYS))
    count = np.zeros(DAYS, dtype=np.int64)
    count[weekday < SATURDAY] = dice.multinomial(ML_JOBS, [1.0 / ML_WEEKDAYS] * ML_WEEKDAYS)
    starts = [
        day * DAY + np.sort(dice.choice(range(OPENS, CLOSES), size))
        for day, size in enumerate(count)
    ]
    return MlJobs(np.concatenate(starts), dice.choice(ML_LENGTHS, ML_JOBS))


def next_workday(finish: Integers) -> Integers:
    """Return the slot by which results are needed: the finish, or the next one in working hours.

    After 17:00 on a Friday that is Saturday at 9:00, as in the artifact.
    """
    day, slot = np.divmod(finish, DAY)
    weekday = _weekday(day)
    is_away = (weekday == SUNDAY) | (slot > CLOSES)
    morning = OPENS + DAY * np.select([weekday == SATURDAY, is_away], [day + 2, day + 1], day)
    is_at_work = (weekday < SATURDAY) & (slot >= OPENS) & (slot <= CLOSES)
    return np.where(is_at_work, finish, morning)


def semi_weekly(finish: Integers) -> Integers:
    """Return the next Monday or Thursday at 9:00, which may be the finish itself."""
    days = np.arange(DAYS + 14)
    weekday = _weekday(days)
    meetings = days[(weekday == MONDAY) | (weekday == THURSDAY)] * DAY + OPENS
    found: Integers = meetings[np.searchsorted(meetings, finish)]
    return found


DEADLINES: dict[str, Callable[[Integers], Integers]] = {
    "next workday": next_workday,
    "semi-weekly": semi_weekly,
}


def _weekday(day: Integers) -> Integers:
    return (day + FIRST_WEEKDAY) % 7


def nightly(actual: Floats, forecast: Floats, shift: int) -> float:
    """Return the mean intensity of the nightly runs that may move `shift` slots either way, g/kWh.

    The first night is dropped if its window begins before the year, but counts in the mean.
    """
    first = np.arange(NIGHTLY_RUNS) * DAY + NIGHTLY_SLOT - shift
    starts = first[first >= 0, None] + np.arange(2 * shift + 1)
    begun = _chosen("lowest-slot", starts, np.ones(len(starts), dtype=np.int64), forecast)
    return float(actual[begun].sum()) / NIGHTLY_RUNS


def in_one_piece(jobs: MlJobs, deadline: Integers, actual: Floats, forecast: Floats) -> float:
    """Return the intensity summed over the slots of jobs that run without a pause."""
    last = deadline + 1 - jobs.length  # the deadline's own slot may be used
    later = np.arange(int((last - jobs.start).max()) + 1)
    starts = np.minimum(jobs.start[:, None] + later, last[:, None])
    begun = _chosen("lowest-window", starts, jobs.length, forecast)
    return float(_sum_over(actual, begun, jobs.length).sum())


def in_pieces(jobs: MlJobs, deadline: Integers, actual: Floats, forecast: Floats) -> float:
    """Return the intensity summed over the slots of jobs that pause at will and at no cost.

    A job runs in all slots no dirtier than its dirtiest one; if several are equal, in more slots
    than it needs, as in the artifact.
    """
    slots = jobs.start[:, None] + np.arange(int((deadline - jobs.start).max()) + 1)
    is_in_time = slots <= deadline[:, None]
    slots = np.minimum(slots, deadline[:, None])
    seen = np.where(is_in_time, forecast[slots], np.inf)
    dirtiest = np.take_along_axis(np.sort(seen, axis=1), jobs.length[:, None] - 1, axis=1)
    return float(actual[slots][seen <= dirtiest].sum())


def _sum_over(values: Floats, begin: Integers, length: Integers) -> Floats:
    """Return the values summed over `length` slots from each `begin` on."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    found: Floats = sums[begin + length] - sums[begin]
    return found


def _chosen(rule: str, starts: Integers, length: Integers, forecast: Floats) -> Integers:
    """Return the start that a rule of the catalogue chooses in each row, [B,S] to [B]."""
    runtime = np.broadcast_to(length[:, None], starts.shape)
    run = _sum_over(forecast, starts, runtime) / runtime
    nothing = np.ones(starts.shape)
    cost = WHEN_RULES[rule](
        SlotColumns(
            wait_s=(SLOT_S * (starts - starts[:, :1])).astype(np.float64),
            runtime_s=(SLOT_S * runtime).astype(np.float64),
            carbon_at_start=forecast[starts],
            carbon_over_run=run,
            price_at_start=nothing,
            price_over_run=nothing,
            weighted_over_run=run,
            busiest_over_run=0.0 * nothing,
            completion=0.0 * nothing,
        )
    )
    found: Integers = np.take_along_axis(starts, np.argmin(cost, axis=1)[:, None], axis=1)[:, 0]
    return found
