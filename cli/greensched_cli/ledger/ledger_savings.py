"""What was saved against running at once, with its interval over workloads.

Intervals are the percentile bootstrap (Efron and Tibshirani 1993, chapter 13): workloads are drawn
again with replacement, by a fixed seed, and the middle 95 % of the changes is told.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from greensched_cli.ledger.ledger_outcomes import Outcome
from greensched_core.units import JOULES_PER_KWH, SECONDS_PER_HOUR
from greensched_policies.costs.cost import Floats
from greensched_simulator.results.cells import Interval

BASELINE = "run-now"
DRAWS, SEED = 1_000, 20_260_101
# Workloads that an interval takes: of sums as uneven as jobs are (lognormal, sigma 1) it holds the
# truth 92 times of 100 with 20 of them, 88 with 10, 79 with 5.
FEWEST = 20
_PERCENTILES = (2.5, 97.5)
_DAY_S = 86_400.0
_HOURLY_UP_TO_S = 3 * _DAY_S

_Amount = Callable[[Outcome], tuple[float | None, float | None]]


class Figure(NamedTuple):
    """One figure over workloads: had they run at once, and what they took."""

    name: str
    unit: str
    run_now: float
    took: float
    workloads: int  # those with data
    percent: Interval  # the change; less is better; the ends are NaN with too few

    @property
    def saved(self) -> float:
        """Return what was saved, negative where more was taken."""
        return self.run_now - self.took


class Savings(NamedTuple):
    """What some workloads saved, together and by namespace."""

    outcomes: Sequence[Outcome]  # by time
    whole: Sequence[Figure]
    by_namespace: Mapping[str, Sequence[Figure]]


class Course(NamedTuple):
    """What was saved in each stretch of time."""

    name: str
    unit: str
    starts: Sequence[datetime]
    saved: Floats
    step_s: float


class Kind(NamedTuple):
    """One kind of amount, and where an outcome has it."""

    name: str
    unit: str
    per_unit: float
    of: _Amount  # had it run at once, and what it took
    measured: _Amount  # estimated, and measured


def savings_of(outcomes: Sequence[Outcome]) -> Savings:
    """Return what the workloads saved, namespaces by name."""
    mine: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        mine.setdefault(outcome.namespace, []).append(outcome)
    kinds = kinds_of(outcomes)
    parts = {name: figures_of(mine[name], kinds) for name in sorted(mine)}
    return Savings(outcomes, figures_of(outcomes, kinds), parts)


def figures_of(outcomes: Sequence[Outcome], kinds: Sequence[Kind] = ()) -> list[Figure]:
    """Return energy, carbon, and the cost in each currency; none that nobody has data of.

    `kinds` are those of the whole that they are a part of, so that units are the same.
    """
    told = (_figure(kind, outcomes) for kind in kinds or kinds_of(outcomes))
    return [figure for figure in told if figure.workloads]


def courses_of(outcomes: Sequence[Outcome]) -> list[Course]:
    """Return what was saved by the hour of the release or end, by the day beyond three days."""
    if not outcomes:
        return []
    first, last = outcomes[0].at, outcomes[-1].at
    step_s = SECONDS_PER_HOUR if last - first <= _HOURLY_UP_TO_S else _DAY_S
    begin = math.floor(first / step_s) * step_s
    count = int((last - begin) // step_s) + 1
    starts = [datetime.fromtimestamp(begin + each * step_s, UTC) for each in range(count)]
    found = []
    for kind in kinds_of(outcomes):
        pairs, places = _pairs(kind, outcomes)
        if places:
            steps = ((np.array([outcomes[at].at for at in places]) - begin) // step_s).astype(int)
            saved = np.bincount(steps, weights=pairs[:, 0] - pairs[:, 1], minlength=count)
            found.append(Course(kind.name, kind.unit, starts, saved.astype(np.float64), step_s))
    return found


def kinds_of(outcomes: Sequence[Outcome]) -> list[Kind]:
    """Return energy, carbon, and the cost in each currency of these outcomes.

    Energy is told in watt hours, and carbon in grams, where all of it is less than a kilo.
    """
    joules = sum(outcome.run_now.energy_j or 0.0 for outcome in outcomes)
    grams = sum(outcome.run_now.carbon_g or 0.0 for outcome in outcomes)
    kinds = [
        Kind(
            "energy", *(("Wh", JOULES_PER_KWH / 1e3) if joules < JOULES_PER_KWH else
                        ("kWh", JOULES_PER_KWH)),
            lambda o: (o.run_now.energy_j, o.took.energy_j),
            lambda o: (o.estimated.energy_j, o.measured.energy_j),
        ),
        Kind(
            "carbon", *(("g", 1.0) if grams < 1_000.0 else ("kg", 1_000.0)),
            lambda o: (o.run_now.carbon_g, o.took.carbon_g),
            lambda o: (o.estimated.carbon_g, o.measured.carbon_g),
        ),
    ]  # fmt: skip
    for currency in sorted({outcome.currency for outcome in outcomes if outcome.currency}):
        of = _in_currency(currency, lambda o: (o.run_now.cost, o.took.cost))
        measured = _in_currency(currency, lambda o: (o.estimated.cost, o.measured.cost))
        kinds.append(Kind("cost", currency, 1.0, of, measured))
    return kinds


def _in_currency(currency: str, costs: _Amount) -> _Amount:
    return lambda outcome: costs(outcome) if outcome.currency == currency else (None, None)


def _pairs(kind: Kind, outcomes: Sequence[Outcome]) -> tuple[Floats, list[int]]:
    """Return run-now and taken of the workloads that have both, [N, 2], and which those are."""
    pairs, places = [], []
    for place, outcome in enumerate(outcomes):
        run_now, took = kind.of(outcome)
        if run_now is not None and took is not None:
            pairs.append((run_now / kind.per_unit, took / kind.per_unit))
            places.append(place)
    return np.array(pairs, dtype=np.float64).reshape(-1, 2), places


def _figure(kind: Kind, outcomes: Sequence[Outcome]) -> Figure:
    pairs, _ = _pairs(kind, outcomes)
    run_now, took = (float(total) for total in pairs.sum(axis=0))
    return Figure(kind.name, kind.unit, run_now, took, len(pairs), interval(pairs))


def interval(pairs: Floats) -> Interval:
    """Return the change in percent of the sums of run-now and taken, [N, 2], with its interval.

    NaN where the sums of run-now are not above zero, and of the ends with fewer than FEWEST.
    """
    mean = float(_change(pairs.sum(axis=0)))
    if len(pairs) < FEWEST:
        return Interval(mean, math.nan, math.nan)
    random, count = np.random.default_rng(SEED), len(pairs)
    drawn = np.empty((DRAWS, 2))
    for turn in range(DRAWS):  # not all at once: 100,000 workloads would take 800 MB
        drawn[turn] = np.bincount(random.integers(0, count, count), minlength=count) @ pairs
    changes = _change(drawn)
    if np.isnan(changes).any():  # sums near zero, as prices below zero make them: no percentage
        return Interval(mean, math.nan, math.nan)
    low, high = np.percentile(changes, _PERCENTILES)
    return Interval(mean, float(low), float(high))


def _change(sums: Floats) -> Floats:
    run_now, took = sums[..., 0], sums[..., 1]
    change: Floats = np.full(np.shape(run_now), np.nan)
    np.divide(100.0 * (took - run_now), run_now, out=change, where=run_now > 0.0)
    return change
