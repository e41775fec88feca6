"""Computes each strategy's figures, their spread over rounds, and their differences."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

from greensched_core.ledger_records import Amounts
from greensched_testbed.changes import change_pct
from greensched_testbed.stress.job_log import JobRun
from greensched_testbed.stress.play import PlayedSuite


@dataclass(frozen=True, slots=True)
class StressResult:
    """One run, and what it took by each meter that measured it."""

    played: PlayedSuite
    amounts: Mapping[str, Amounts]

    @property
    def completed(self) -> frozenset[str]:
        """Names of the Jobs that completed."""
        return frozenset(run.job.name for run in self.played.runs if run.end == "completed")


@dataclass(frozen=True, slots=True)
class StrategyFigure:
    """One figure of one strategy over all rounds; None means unknown."""

    mean: float | None
    least: float | None
    most: float | None
    change_pct: float | None = None  # of the mean, against the first strategy's


Read = Callable[[StressResult, str | None], float | None]


@dataclass(frozen=True, slots=True)
class FigureLine:
    """A figure's title, its unit, and how to read it from a run for a meter."""

    title: str
    unit: str
    read: Read
    is_compared: bool = True  # change against the first strategy


def _count(counts: Callable[[JobRun], bool]) -> Read:
    return lambda result, _: float(sum(map(counts, result.played.runs)))


def _times(read: Callable[[JobRun], float | None], of: Callable[[list[float]], float]) -> Read:
    def figure(result: StressResult, _: str | None) -> float | None:
        known = [value for run in result.played.runs if (value := read(run)) is not None]
        return of(known) if known else None

    return figure


def _amount(name: str) -> Read:
    def figure(result: StressResult, meter: str | None) -> float | None:
        amounts = result.amounts.get(meter or "")
        return None if amounts is None else getattr(amounts, name)

    return figure


def _p95(values: list[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]


def _completion_s(run: JobRun) -> float | None:
    return run.completion_s


LINES: Mapping[str, FigureLine] = {
    "jobs": FigureLine("Jobs", "", _count(lambda run: True), is_compared=False),
    "completed": FigureLine("completed", "", _count(lambda run: run.end == "completed"), False),
    "failed": FigureLine("failed", "", _count(lambda run: run.end == "failed"), False),
    "never_ran": FigureLine("of that never run", "", _count(lambda run: run.never_ran), False),
    "unfinished": FigureLine("not ended in time", "", _count(lambda run: not run.end), False),
    "missed_deadlines": FigureLine(
        "deadlines missed", "", _count(lambda run: run.has_missed), is_compared=False
    ),
    "completion_median_s": FigureLine("completion, median", "s", _times(_completion_s, median)),
    "completion_p95_s": FigureLine("completion, 95th percentile", "s", _times(_completion_s, _p95)),
    "run_median_s": FigureLine(
        "of that running, median", "s", _times(lambda run: run.run_s, median)
    ),
    "energy_j": FigureLine("energy above idle", "J", _amount("energy_j")),
    "cost": FigureLine("cost above idle", "", _amount("cost")),
    "carbon_g": FigureLine("carbon above idle", "g", _amount("carbon_g")),
}
OF_METERS = ("energy_j", "cost", "carbon_g")


def figures_of(
    results: Sequence[StressResult], meter: str | None
) -> dict[str, dict[str, StrategyFigure]]:
    """Return the figures by strategy, in the strategies' order, and by name.

    A figure that is unknown in any round is None. Changes are given only if all runs completed
    the same Jobs: otherwise a strategy that did less work would seem to save.
    """
    by_strategy: dict[str, list[StressResult]] = {}
    for result in results:
        by_strategy.setdefault(result.played.strategy.name, []).append(result)
    is_fair = len({result.completed for result in results}) == 1
    found: dict[str, dict[str, StrategyFigure]] = {}
    for name, mine in by_strategy.items():
        first = next(iter(found.values()), None)
        found[name] = {
            key: _figure(line, mine, meter, first[key] if first and is_fair else None)
            for key, line in LINES.items()
        }
    return found


def _figure(
    line: FigureLine, mine: Sequence[StressResult], meter: str | None, first: StrategyFigure | None
) -> StrategyFigure:
    values = [line.read(result, meter) for result in mine]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return StrategyFigure(None, None, None)
    mean = fmean(known)
    change = None
    if line.is_compared and first is not None and first.mean is not None:
        change = change_pct(mean, first.mean)
    return StrategyFigure(mean, min(known), max(known), change)
