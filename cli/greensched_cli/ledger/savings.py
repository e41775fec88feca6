"""Savings against running at once, with confidence intervals over workloads.

Intervals are the percentile bootstrap (Efron and Tibshirani 1993, chapter 13): workloads are
resampled with replacement, by a fixed seed, and the interval is the middle 95 % of the changes.
Many workloads are resampled in random groups, whose sums spread as those of single ones do.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

from greensched_cli.ledger.outcomes import WorkOutcome
from greensched_core.units import JOULES_PER_KWH, SECONDS_PER_HOUR
from greensched_simulator.results.cells import ConfidenceInterval

RUN_NOW_BASELINE = "run-now"
DRAWS, SEED = 1_000, 20_260_101
# Workloads needed for an interval. With sums as uneven as those of jobs (lognormal, sigma 1) it
# covers the true change 92 times of 100 with 20 workloads, 88 with 10, 79 with 5.
FEWEST = 20
# More workloads than this are resampled in this number of groups. The interval's width is then
# known to about 4 %, as that many draws give, and 100,000 workloads take no longer than 1,000.
MOST_DRAWN = 500
_PARTS = 40  # equal parts; leaving out the first and the last keeps 95 %
_DAY_S = 86_400.0
_HOURLY_UP_TO_S = 3 * _DAY_S

_Amount = Callable[[WorkOutcome], tuple[float | None, float | None]]
ValuePair = tuple[float, float]  # the amount of running at once, and the amount taken


class SavingsFigure(NamedTuple):
    """One sum over workloads: of running at once, and of what they took."""

    name: str
    unit: str
    run_now: float
    took: float
    workloads: int  # with data
    percent: ConfidenceInterval  # the change; less is better; ends are NaN for too few workloads

    @property
    def saved(self) -> float:
        """Return the amount saved, negative if more was taken."""
        return self.run_now - self.took


class Savings(NamedTuple):
    """The savings of workloads, together and by namespace."""

    outcomes: Sequence[WorkOutcome]  # by time
    whole: Sequence[SavingsFigure]
    by_namespace: Mapping[str, Sequence[SavingsFigure]]


class SavingsCourse(NamedTuple):
    """The savings in each time step."""

    name: str
    unit: str
    starts: Sequence[datetime]
    saved: Sequence[float]
    step_s: float


class AmountKind(NamedTuple):
    """One kind of amount, and how to read it from an outcome."""

    name: str
    unit: str
    per_unit: float
    of: _Amount  # the amounts of running at once, and taken
    measured: _Amount  # the amounts estimated, and measured


def savings_of(outcomes: Sequence[WorkOutcome]) -> Savings:
    """Return the savings of workloads, with namespaces sorted by name."""
    mine: dict[str, list[WorkOutcome]] = {}
    for outcome in outcomes:
        mine.setdefault(outcome.namespace, []).append(outcome)
    kinds = kinds_of(outcomes)
    parts = {name: savings_figures(mine[name], kinds) for name in sorted(mine)}
    return Savings(outcomes, savings_figures(outcomes, kinds), parts)


def savings_figures(
    outcomes: Sequence[WorkOutcome], kinds: Sequence[AmountKind] = ()
) -> list[SavingsFigure]:
    """Return energy, carbon, and the cost in each currency; leave out figures without data.

    For a part of the workloads, pass the `kinds` of the whole, so that units are the same.
    """
    figures = (_figure(kind, outcomes) for kind in kinds or kinds_of(outcomes))
    return [figure for figure in figures if figure.workloads]


def savings_courses(outcomes: Sequence[WorkOutcome]) -> list[SavingsCourse]:
    """Return savings by the hour of the release or end; by the day for more than three days."""
    if not outcomes:
        return []
    first, last = outcomes[0].at, outcomes[-1].at
    step_s = SECONDS_PER_HOUR if last - first <= _HOURLY_UP_TO_S else _DAY_S
    begin = math.floor(first / step_s) * step_s
    count = int((last - begin) // step_s) + 1
    starts = [datetime.fromtimestamp(begin + each * step_s, UTC) for each in range(count)]
    found = []
    for kind in kinds_of(outcomes):
        pairs = _pairs(kind, outcomes)
        if pairs:
            saved = [0.0] * count
            for place, (run_now, took) in pairs.items():
                saved[int((outcomes[place].at - begin) // step_s)] += run_now - took
            found.append(SavingsCourse(kind.name, kind.unit, starts, saved, step_s))
    return found


def kinds_of(outcomes: Sequence[WorkOutcome]) -> list[AmountKind]:
    """Return energy, carbon, and the cost in each currency of these outcomes.

    Energy is in Wh if the total is below 1 kWh, and carbon in g if the total is below 1 kg.
    """
    joules = sum(outcome.run_now.energy_j or 0.0 for outcome in outcomes)
    grams = sum(outcome.run_now.carbon_g or 0.0 for outcome in outcomes)
    kinds = [
        AmountKind(
            "energy", *(("Wh", JOULES_PER_KWH / 1e3) if joules < JOULES_PER_KWH else
                        ("kWh", JOULES_PER_KWH)),
            lambda o: (o.run_now.energy_j, o.took.energy_j),
            lambda o: (o.estimated.energy_j, o.measured.energy_j),
        ),
        AmountKind(
            "carbon", *(("g", 1.0) if grams < 1_000.0 else ("kg", 1_000.0)),
            lambda o: (o.run_now.carbon_g, o.took.carbon_g),
            lambda o: (o.estimated.carbon_g, o.measured.carbon_g),
        ),
    ]  # fmt: skip
    for currency in sorted({outcome.currency for outcome in outcomes if outcome.currency}):
        of = _in_currency(currency, lambda o: (o.run_now.cost, o.took.cost))
        measured = _in_currency(currency, lambda o: (o.estimated.cost, o.measured.cost))
        kinds.append(AmountKind("cost", currency, 1.0, of, measured))
    return kinds


def _in_currency(currency: str, costs: _Amount) -> _Amount:
    return lambda outcome: costs(outcome) if outcome.currency == currency else (None, None)


def _pairs(kind: AmountKind, outcomes: Sequence[WorkOutcome]) -> dict[int, ValuePair]:
    """Return the amounts of workloads that have both, by their index."""
    pairs = {}
    for place, outcome in enumerate(outcomes):
        run_now, took = kind.of(outcome)
        if run_now is not None and took is not None:
            pairs[place] = (run_now / kind.per_unit, took / kind.per_unit)
    return pairs


def _figure(kind: AmountKind, outcomes: Sequence[WorkOutcome]) -> SavingsFigure:
    pairs = list(_pairs(kind, outcomes).values())
    run_now, took = _sums(pairs)
    return SavingsFigure(kind.name, kind.unit, run_now, took, len(pairs), savings_interval(pairs))


def _sums(pairs: Sequence[ValuePair]) -> ValuePair:
    return math.fsum(pair[0] for pair in pairs), math.fsum(pair[1] for pair in pairs)


def savings_interval(pairs: Sequence[ValuePair]) -> ConfidenceInterval:
    """Return the change in percent between the sums of run-now and taken, with its interval.

    The change is NaN if the sum of run-now is not above zero. The ends are also NaN if a resampled
    sum is not, or with fewer pairs than FEWEST.
    """
    mean = _change(*_sums(pairs))
    if len(pairs) < FEWEST:
        return ConfidenceInterval(mean, math.nan, math.nan)
    random = Random(SEED)
    drawn = _drawn(pairs, random)
    totals = (sum(random.choices(drawn, k=len(drawn)), 0j) for _ in range(DRAWS))
    changes = [_change(total.real, total.imag) for total in totals]
    if any(map(math.isnan, changes)):  # sums near zero, which negative prices cause
        return ConfidenceInterval(mean, math.nan, math.nan)
    ends = statistics.quantiles(changes, n=_PARTS, method="inclusive")
    return ConfidenceInterval(mean, ends[0], ends[-1])


def _drawn(pairs: Sequence[ValuePair], random: Random) -> list[complex]:
    """Return the units to resample: each workload or, if there are too many, each group.

    Run-now is the real part and taken the imaginary part, so that one sum adds both.
    """
    singles = [complex(*pair) for pair in pairs]
    if len(singles) <= MOST_DRAWN:
        return singles
    random.shuffle(singles)
    return [sum(singles[at::MOST_DRAWN], 0j) for at in range(MOST_DRAWN)]


def _change(run_now: float, took: float) -> float:
    return 100.0 * (took - run_now) / run_now if run_now > 0.0 else math.nan
