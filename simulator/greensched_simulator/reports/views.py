"""The values of a report's plots, read from a run's folder."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset

from greensched_core.units import SECONDS_PER_HOUR
from greensched_policies.costs.cost import Floats
from greensched_simulator.policy import Policy
from greensched_simulator.reports.looks import POLICY_COLOURS
from greensched_simulator.results.cells import ConfidenceInterval
from greensched_simulator.results.comparison import (
    CARBON,
    COST,
    ENERGY,
    ComparedFigure,
    Results,
    difference,
    does_less,
    mean_outcome,
)
from greensched_simulator.results.run_folder import FinishedRun

# Fields of a point against which carbon is drawn, with their titles.
_AGAINST = {
    "slowdown": "mean slowdown",
    "wait_h": "mean wait, h",
    "missed": "deadlines missed",
    "cost": "cost",
}
SHOWN_PCT = 99.9  # of each policy's jobs; a few long waits would squeeze all others
_BATCH_ROWS = 200_000
_MINUTE_S = 60.0
_WAIT_BINS = 30 * 24 * 60  # of a minute
_ROUNDING_S = 0.5  # a wait of just six hours counts as no longer than six hours
_WAIT_POINTS = 500  # a curve needs no more
_SHOWN_WITHOUT_WAITS = 60  # bins, an hour; a curve of one bin would be an invisible point


class Changes(NamedTuple):
    """One figure's paired change against the baseline."""

    title: str
    by_policy: Mapping[Policy, ConfidenceInterval]  # percent


class Point(NamedTuple):
    """A policy's mean figures over seeds."""

    policy: Policy
    carbon_kg: float
    cost: float
    wait_h: float
    slowdown: float
    missed: float
    does_less: bool = False  # work than the baseline


class HourlyValues(NamedTuple):
    """Values over the hours since the scenario's start; each holds until the next."""

    hours: Floats
    values: Floats


class Waits(NamedTuple):
    """Each policy's share of jobs that began within each wait, [W]; all seeds together."""

    hours: Floats
    share_pct: Mapping[Policy, Floats]


class Views(NamedTuple):
    """The values of all plots of a report."""

    changes: Sequence[Changes]  # none without a baseline
    do_less: Collection[Policy]  # policies that did less work than the baseline
    points: Sequence[Point]
    marked: Sequence[Policy]  # with distinct colours in plots
    power: Mapping[Policy, HourlyValues]  # kW, with the first seed
    grid: Mapping[str, HourlyValues]  # g/kWh of each zone, with the first seed
    waits: Waits


def views_of(run: FinishedRun) -> Views:
    """Return the values of a run's plots; raise BadInput if a file of its folder is missing."""
    results = run.results
    shown = points(results)
    return Views(
        changes(results) if results.baseline else (),
        [policy for policy in results.policies if does_less(results, policy)],
        shown,
        marked(results, shown),
        power(run),
        carbon_of_grid(run),
        waits(run),
    )


def drawn_first(results: Results) -> list[Policy]:
    """Return the policies to draw if there is no room for all: baseline and least carbon.

    Each has a bill with the first seed. A policy that did less work than the baseline is not drawn
    as the one of least carbon.
    """
    has_power = _billed_first(results)
    whole = [policy for policy in _billed(results) if not does_less(results, policy)]
    whole.sort(key=lambda each: mean_outcome(results.outcomes[each]).carbon_g)
    wanted = dict.fromkeys((results.baseline, *whole[:1]))
    return [each for each in has_power if each in wanted] or has_power[:1]


def changes(results: Results) -> list[Changes]:
    """Return the changes of carbon, cost and energy, without the baseline's."""
    figures: Sequence[tuple[str, ComparedFigure]] = (
        ("carbon", CARBON),
        ("cost", COST),
        ("energy", ENERGY),
    )
    others = [policy for policy in results.policies if policy != results.baseline]
    return [
        Changes(title, {each: difference(figure, results, each).percent for each in others})
        for title, figure in figures
    ]


def _billed(results: Results) -> list[Policy]:
    """Return the policies that have a bill with all seeds."""
    return [each for each in results.policies if mean_outcome(results.outcomes[each]).is_billed]


def _billed_first(results: Results) -> list[Policy]:
    """Return the policies that have a bill with the first seed."""
    return [each for each in results.policies if results.outcomes[each][0].is_billed]


def points(results: Results) -> list[Point]:
    """Return a point for each policy that has a bill with all seeds."""
    found = []
    for policy in _billed(results):
        mean = mean_outcome(results.outcomes[policy])
        missed = mean.deadlines - mean.deadlines_met
        found.append(
            Point(
                policy, mean.carbon_g / 1e3, mean.cost, mean.wait_mean_s / SECONDS_PER_HOUR,
                mean.slowdown_mean, missed, does_less(results, policy),
            )
        )  # fmt: skip
    return found


def against(shown: Sequence[Point], currency: str) -> Mapping[str, str]:
    """Return the fields of points against which carbon is drawn, each with its title.

    Missed deadlines are left out if there are none.
    """
    titles = {**_AGAINST, "cost": f"cost, {currency}"}
    if not any(point.missed for point in shown):
        del titles["missed"]
    return titles


def front(shown: Sequence[Point], other: str) -> list[Point]:
    """Return the points that no other point beats in both carbon and `other`, by carbon.

    `other` is a field of the points; of equal points the first is kept. What did less work than the
    baseline beats nothing.
    """
    kept: list[Point] = []
    whole = [point for point in shown if not point.does_less]
    for point in sorted(whole, key=lambda each: (each.carbon_kg, getattr(each, other))):
        if not kept or getattr(point, other) < getattr(kept[-1], other):
            kept.append(point)
    return kept


def marked(results: Results, shown: Sequence[Point]) -> list[Policy]:
    """Return the policies with distinct colours: all if there are enough colours.

    Otherwise the baseline, the least carbon, and those on a front.
    """
    others = [policy for policy in results.policies if policy != results.baseline]
    if len(others) <= len(POLICY_COLOURS):
        return list(results.policies)
    best = {point.policy for other in _AGAINST for point in front(shown, other)}
    kept = best.union(drawn_first(results))
    return [policy for policy in results.policies if policy in kept]


def power(run: FinishedRun) -> Mapping[Policy, HourlyValues]:
    """Return the cluster's power in kW by hour, with the first seed, of what has bills."""
    parts = [f"energy_{part}_j" for part in ("active", "idle", "sleep", "wake")]
    columns = ["policy", "hour", "length_s", *parts]
    by_name = {policy.name: policy for policy in run.results.policies}
    joules = {policy: np.zeros(0) for policy in _billed_first(run.results)}
    length_s = np.zeros(0)
    for batch in _batches(run, "node-hours", columns):
        hour = _numbers(batch, "hour").astype(np.int64)
        energy_j = np.sum([_numbers(batch, part) for part in parts], axis=0)
        needed = int(hour.max()) + 1
        length_s = _longer(length_s, needed)
        np.maximum.at(length_s, hour, _numbers(batch, "length_s"))
        for name, rows in _by_policy(batch).items():
            policy = by_name[name]
            joules[policy] = _longer(joules[policy], needed)
            np.add.at(joules[policy], hour[rows], energy_j[rows])
    hours = np.append(np.arange(length_s.size), length_s.sum() / SECONDS_PER_HOUR)
    watts = {policy: _longer(each, length_s.size) / length_s for policy, each in joules.items()}
    return {
        policy: HourlyValues(hours, np.append(each, each[-1]) / 1e3)
        for policy, each in watts.items()
    }


def carbon_of_grid(run: FinishedRun) -> Mapping[str, HourlyValues]:
    """Return each zone's carbon intensity in g/kWh, with the first seed."""
    found: dict[str, list[tuple[Floats, Floats]]] = {}
    end_h = run.results.billed_s[0] / SECONDS_PER_HOUR
    for batch in _batches(run, "grid", ["zone", "time_s", "carbon_g_per_kwh"]):
        zones = np.array(batch.column("zone").to_pylist())
        hours = _numbers(batch, "time_s") / SECONDS_PER_HOUR
        values = _numbers(batch, "carbon_g_per_kwh")
        for zone in dict.fromkeys(zones.tolist()):
            in_zone = zones == zone
            found.setdefault(zone, []).append((hours[in_zone], values[in_zone]))
    courses = {}
    for zone, parts in found.items():
        hours, values = (np.concatenate(column) for column in zip(*parts, strict=True))
        ends = np.append(np.maximum(hours, 0.0), end_h)
        courses[zone] = HourlyValues(ends, np.append(values, values[-1]))
    return courses


def waits(run: FinishedRun) -> Waits:
    """Return the distribution of waits over all seeds; no share includes jobs that never began."""
    by_name = {policy.name: policy for policy in run.results.policies}
    counts = {policy: np.zeros(_WAIT_BINS + 1) for policy in by_name.values()}
    jobs = dict.fromkeys(counts, 0)
    for batch in _batches(run, "jobs", ["policy", "wait_s"], is_first_seed=False):
        wait_s = _numbers(batch, "wait_s")
        for name, rows in _by_policy(batch).items():
            jobs[by_name[name]] += rows.size
            began_s = wait_s[rows][~np.isnan(wait_s[rows])]
            minute = np.ceil((began_s - _ROUNDING_S) / _MINUTE_S)
            places = np.clip(minute, 0, _WAIT_BINS).astype(np.int64)
            counts[by_name[name]] += np.bincount(places, minlength=_WAIT_BINS + 1)
    shares = {
        policy: 100.0 * np.cumsum(each) / max(jobs[policy], 1) for policy, each in counts.items()
    }
    last = max(int(np.searchsorted(each, min(SHOWN_PCT, each[-1]))) for each in shares.values())
    last = last or _SHOWN_WITHOUT_WAITS
    shown = np.arange(0, last + 1, max(-(-last // _WAIT_POINTS), 1))
    shown = np.append(shown, last) if shown[-1] < last else shown
    return Waits(
        shown.astype(np.float64) * (_MINUTE_S / SECONDS_PER_HOUR),
        {policy: share[shown] for policy, share in shares.items()},
    )


def _batches(
    run: FinishedRun, table: str, columns: list[str], *, is_first_seed: bool = True
) -> Iterator[pa.RecordBatch]:
    rows = pyarrow.dataset.dataset(run.rows(table))
    wanted = pyarrow.dataset.field("seed") == run.results.seeds[0] if is_first_seed else None
    batches = rows.to_batches(columns=columns, filter=wanted, batch_size=_BATCH_ROWS)
    return (batch for batch in batches if batch.num_rows)


def _numbers(batch: pa.RecordBatch, column: str) -> Floats:
    values: Floats = batch.column(column).to_numpy(zero_copy_only=False).astype(np.float64)
    return values


def _by_policy(batch: pa.RecordBatch) -> dict[str, np.typing.NDArray[np.intp]]:
    """Return the rows of each policy of a batch."""
    coded = batch.column("policy")
    codes, names = coded.indices.to_numpy(), coded.dictionary.to_pylist()
    return {names[code]: np.flatnonzero(codes == code) for code in np.unique(codes)}


def _longer(values: Floats, size: int) -> Floats:
    return np.append(values, np.zeros(max(size - values.size, 0)))
