"""What was saved against running at once, with its interval over workloads.

Intervals are the percentile bootstrap (Efron and Tibshirani 1993, chapter 13): workloads are drawn
again with replacement, by a fixed seed, and the middle 95 % of the changes is told. Many workloads
are drawn in groups made by lot: sums of them spread as those of single ones do.
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

BASELINE = "run-now"
DRAWS, SEED = 1_000, 20_260_101
# Workloads that an interval takes: of sums as uneven as jobs are (lognormal, sigma 1) it holds the
# truth 92 times of 100 with 20 of them, 88 with 10, 79 with 5.
FEWEST = 20
# Groups that more workloads than that are drawn in. The interval's width is then as sure as it is
# by so many draws, to about 4 %, and a ledger of 100,000 takes no longer than one of a thousand.
MOST_DRAWN = 500
_PARTS = 40  # equal ones, of which the first and the last are left out: 95 %
_DAY_S = 86_400.0
_HOURLY_UP_TO_S = 3 * _DAY_S

_Amount = Callable[[WorkOutcome], tuple[float | None, float | None]]
Pair = tuple[float, float]  # had it run at once, and what it took


class SavingsFigure(NamedTuple):
    """One figure over workloads: had they run at once, and what they took."""

    name: str
    unit: str
    run_now: float
    took: float
    workloads: int  # those with data
    percent: ConfidenceInterval  # the change; less is better; the ends are NaN with too few

    @property
    def saved(self) -> float:
        """Return what was saved, negative where more was taken."""
        return self.run_now - self.took


class Savings(NamedTuple):
    """What some workloads saved, together and by namespace."""

    outcomes: Sequence[WorkOutcome]  # by time
    whole: Sequence[SavingsFigure]
    by_namespace: Mapping[str, Sequence[SavingsFigure]]


class SavingsCourse(NamedTuple):
    """What was saved in each span of time."""

    name: str
    unit: str
    starts: Sequence[datetime]
    saved: Sequence[float]
    step_s: float


class AmountKind(NamedTuple):
    """One kind of amount, and where an outcome has it."""

    name: str
    unit: str
    per_unit: float
    of: _Amount  # had it run at once, and what it took
    measured: _Amount  # estimated, and measured


def savings_of(outcomes: Sequence[WorkOutcome]) -> Savings:
    """Return what the workloads saved, namespaces by name."""
    mine: dict[str, list[WorkOutcome]] = {}
    for outcome in outcomes:
        mine.setdefault(outcome.namespace, []).append(outcome)
    kinds = kinds_of(outcomes)
    parts = {name: figures_of(mine[name], kinds) for name in sorted(mine)}
    return Savings(outcomes, figures_of(outcomes, kinds), parts)


def figures_of(
    outcomes: Sequence[WorkOutcome], kinds: Sequence[AmountKind] = ()
) -> list[SavingsFigure]:
    """Return energy, carbon, and the cost in each currency; none without data.

    `kinds` are those of the whole that they are a part of, so that units are the same.
    """
    told = (_figure(kind, outcomes) for kind in kinds or kinds_of(outcomes))
    return [figure for figure in told if figure.workloads]


def courses_of(outcomes: Sequence[WorkOutcome]) -> list[SavingsCourse]:
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
        pairs = _pairs(kind, outcomes)
        if pairs:
            saved = [0.0] * count
            for place, (run_now, took) in pairs.items():
                saved[int((outcomes[place].at - begin) // step_s)] += run_now - took
            found.append(SavingsCourse(kind.name, kind.unit, starts, saved, step_s))
    return found


def kinds_of(outcomes: Sequence[WorkOutcome]) -> list[AmountKind]:
    """Return energy, carbon, and the cost in each currency of these outcomes.

    Energy is told in watt hours, and carbon in grams, where all of it is less than a kilo.
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


def _pairs(kind: AmountKind, outcomes: Sequence[WorkOutcome]) -> dict[int, Pair]:
    """Return run-now and taken of the workloads that have both, by their place."""
    pairs = {}
    for place, outcome in enumerate(outcomes):
        run_now, took = kind.of(outcome)
        if run_now is not None and took is not None:
            pairs[place] = (run_now / kind.per_unit, took / kind.per_unit)
    return pairs


def _figure(kind: AmountKind, outcomes: Sequence[WorkOutcome]) -> SavingsFigure:
    pairs = list(_pairs(kind, outcomes).values())
    run_now, took = _sums(pairs)
    return SavingsFigure(kind.name, kind.unit, run_now, took, len(pairs), interval(pairs))


def _sums(pairs: Sequence[Pair]) -> Pair:
    return math.fsum(pair[0] for pair in pairs), math.fsum(pair[1] for pair in pairs)


def interval(pairs: Sequence[Pair]) -> ConfidenceInterval:
    """Return the change in percent of the sums of run-now and taken, with its interval.

    NaN where the sums of run-now are not above zero, and of the ends with fewer than FEWEST.
    """
    mean = _change(*_sums(pairs))
    if len(pairs) < FEWEST:
        return ConfidenceInterval(mean, math.nan, math.nan)
    random = Random(SEED)
    drawn = _drawn(pairs, random)
    totals = (sum(random.choices(drawn, k=len(drawn)), 0j) for _ in range(DRAWS))
    changes = [_change(total.real, total.imag) for total in totals]
    if any(map(math.isnan, changes)):  # sums near zero, as prices below zero make them
        return ConfidenceInterval(mean, math.nan, math.nan)
    ends = statistics.quantiles(changes, n=_PARTS, method="inclusive")
    return ConfidenceInterval(mean, ends[0], ends[-1])


def _drawn(pairs: Sequence[Pair], random: Random) -> list[complex]:
    """Return what is drawn, run-now as the real part and taken as the imaginary: one sum adds both.

    A workload each, or a group each where there are too many.
    """
    singles = [complex(*pair) for pair in pairs]
    if len(singles) <= MOST_DRAWN:
        return singles
    random.shuffle(singles)
    return [sum(singles[at::MOST_DRAWN], 0j) for at in range(MOST_DRAWN)]


def _change(run_now: float, took: float) -> float:
    return 100.0 * (took - run_now) / run_now if run_now > 0.0 else math.nan
