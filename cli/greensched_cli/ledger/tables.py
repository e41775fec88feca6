"""The tables of a ledger's report, for terminals and pages."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from greensched_cli.explain.explanation import printable
from greensched_cli.ledger.outcomes import (
    WorkOutcome,
    counted,
    is_late,
    is_overdue,
    is_waiting,
    outcomes_of,
)
from greensched_cli.ledger.savings import (
    DRAWS,
    FEWEST,
    RUN_NOW_BASELINE,
    Savings,
    SavingsFigure,
    kinds_of,
    savings_of,
)
from greensched_cli.ledger.source import LedgerSpan, ReadLedger
from greensched_core.ledger_records import LossReason, What
from greensched_core.signals.timestamps import format_timestamp
from greensched_simulator.results.cells import Cell, ConfidenceInterval, ResultRow, large, tone_of

HOW_CERTAIN = (
    f"Changes compare sums with {RUN_NOW_BASELINE}: the same work, started on arrival. Each change "
    f"has a 95 % interval from resampling the workloads {DRAWS:,} times (bootstrap, fixed seed): "
    "it shows how much the change depends on which workloads arrived. Fewer than "
    f"{FEWEST} workloads have no interval, so their change may be chance. The interval does not "
    "cover errors that all workloads share: of the forecast behind the counterfactual, of "
    "estimated watts and runtimes, and of similar runs of one CronJob. No figure includes idle "
    "power."
)


@dataclass(frozen=True)
class LedgerReport:
    """The content of a report on a span of time."""

    span: LedgerSpan
    source: str
    notes: Sequence[str]
    done: Savings  # started or ended
    unstarted: Sequence[WorkOutcome]  # held, and not started
    shadow: Savings  # in shadow mode: estimates for work that was not held
    decided: Mapping[What, int]
    placed_by_us: int
    lost: Mapping[LossReason, int | None]  # None: unknown number


def report_of(read: ReadLedger, span: LedgerSpan) -> LedgerReport:
    """Return the report on a ledger that was read."""
    outcomes = outcomes_of(read.records)
    real = [outcome for outcome in outcomes if not outcome.is_shadow]
    lost: dict[LossReason, int | None] = {}
    for loss in read.losses:
        before = lost.get(loss.reason, 0)
        known = loss.records is not None and before is not None
        lost[loss.reason] = (before or 0) + (loss.records or 0) if known else None
    decided = counted(read.records)
    return LedgerReport(
        span=span,
        source=read.source,
        notes=read.notes,
        done=savings_of([outcome for outcome in real if outcome.has_started]),
        unstarted=[outcome for outcome in real if not outcome.has_started],
        shadow=savings_of([outcome for outcome in outcomes if outcome.is_shadow]),
        decided=decided,
        placed_by_us=decided.get(What.PLACED, 0),
        lost=lost,
    )


def saved_rows(figures: Sequence[SavingsFigure]) -> list[ResultRow]:
    """Return a head, and a line for each figure."""
    head = ("", "workloads", RUN_NOW_BASELINE, "took", "saved", "change")
    return [head, *(_saved_row(figure.name, figure) for figure in figures)]


def namespace_rows(savings: Savings) -> list[ResultRow]:
    """Return a head, and a line for each namespace with the change of each figure."""
    found, workloads = savings.by_namespace, Counter(o.namespace for o in savings.outcomes)
    names = list(dict.fromkeys(_title(each) for figures in found.values() for each in figures))
    rows: list[ResultRow] = [("namespace", "workloads", *(f"change of {name}" for name in names))]
    for namespace, figures in found.items():
        mine = {_title(figure): savings_change_cell(figure.percent) for figure in figures}
        cells = (mine.get(name, "no data") for name in names)
        rows.append((printable(namespace), _count(workloads[namespace]), *cells))
    return rows


def measured_rows(outcomes: Sequence[WorkOutcome]) -> list[ResultRow]:
    """Return a head and estimated and measured sums; no rows without a meter.

    Each sum is over the workloads that have both an estimate and a measurement.
    """
    rows: list[ResultRow] = []
    for kind in kinds_of(outcomes):
        pairs = [kind.measured(outcome) for outcome in outcomes]
        both = [(e, m) for e, m in pairs if e is not None and m is not None]
        if both:
            estimated, measured = (sum(side) / kind.per_unit for side in zip(*both, strict=True))
            amounts = (f"{large(amount)} {kind.unit}" for amount in (estimated, measured))
            share = f"{measured / estimated:.2f}" if estimated > 0 else "–"
            rows.append((kind.name, _count(len(both)), *amounts, share))
    head = ("", "workloads", "estimated", "measured", "measured/estimated")
    return [head, *rows] if rows else []


def decided_rows(report: LedgerReport) -> list[ResultRow]:
    """Return how many workloads were held, released, late, paused and placed, and records lost."""
    done = report.done.outcomes
    every, until = [*done, *report.unstarted], report.span.until
    deleted = sum(outcome.was_deleted for outcome in every)
    waiting = sum(is_waiting(outcome, until) for outcome in report.unstarted)
    unrecorded = len(report.unstarted) - deleted - waiting
    measured = sum(outcome.is_measured for outcome in done)
    by_cpu_time = sum(outcome.is_by_cpu_time for outcome in done)
    dearer = [outcome for outcome in done if _took_more_carbon(outcome)]
    late = sum(map(is_late, done))
    overdue = sum(is_overdue(outcome, until) for outcome in every)
    rows: list[ResultRow] = [
        ("held", _count(sum(outcome.was_held for outcome in every))),
        ("still waiting", _count(waiting)),
        ("deleted while it was held", _count(deleted)),
        ("past its latest start, start not recorded", _count(unrecorded)),
        ("started", _count(len(done))),
        *_reasons(done),
        ("ended late", Cell(_count(late), "worse" if late else "")),
        ("past its deadline, end not recorded", Cell(_count(overdue), "worse" if overdue else "")),
        ("paused", _count(sum(outcome.pauses > 0 for outcome in every))),
        ("placed on a node", _count(report.placed_by_us)),
        (f"more carbon than {RUN_NOW_BASELINE}", f"{_count(len(dearer))} of {_count(len(done))}"),
        ("energy measured", f"{_count(measured)} of {_count(len(done))}, else estimated"),
        ("energy estimated by CPU time", f"{_count(by_cpu_time)} of {_count(len(done))}"),
        ("only watched, in shadow mode", _count(len(report.shadow.outcomes))),
        ("decisions that are not in the ledger", _lost_cell(report.lost)),
    ]
    return rows


def losses_of(savings: Savings) -> list[str]:
    """Return a sentence for each figure that is worse than running at once, interval included."""
    parts = {"all namespaces together": savings.whole, **savings.by_namespace}
    return [
        f"{printable(namespace)}: {figure.name} {savings_change_text(figure.percent)}"
        for namespace, figures in parts.items()
        for figure in figures
        if tone_of(figure.percent) == "worse"
    ]


def in_namespace(report: LedgerReport) -> str:
    """Return ` in namespace NAME` for a report on one namespace, else ""."""
    return f" in namespace {printable(report.span.namespace)}" if report.span.namespace else ""


def report_facts(report: LedgerReport) -> list[ResultRow]:
    """Return the report's source, time, namespace, baseline and notes."""
    span = report.span
    times = (format_timestamp(round(each)) for each in (span.since, span.until))
    return [
        ("ledger", report.source),
        ("time", " to ".join(times)),
        ("namespace", span.namespace or "all"),
        ("baseline", f"{RUN_NOW_BASELINE}: the same work, started on arrival"),
        *(("note", note) for note in report.notes),
    ]


def savings_change_text(percent: ConfidenceInterval) -> str:
    """Return a change with its interval; a dash if there is no change."""
    if math.isnan(percent.mean):
        return "–"
    if math.isnan(percent.low):
        return f"{_signed(percent.mean)} %"
    return f"{_signed(percent.mean)} % ({_signed(percent.low)} to {_signed(percent.high)})"


def savings_change_cell(percent: ConfidenceInterval) -> Cell:
    """Return a change with its interval, coloured if the whole interval is better or worse."""
    return Cell(savings_change_text(percent), tone_of(percent))


def _saved_row(name: str, figure: SavingsFigure) -> ResultRow:
    amounts = (figure.run_now, figure.took, figure.saved)
    texts = (f"{large(amount)} {figure.unit}" for amount in amounts)
    return (name, f"{figure.workloads:,}", *texts, savings_change_cell(figure.percent))


def _title(figure: SavingsFigure) -> str:
    return f"cost in {figure.unit}" if figure.name == "cost" else figure.name


def _reasons(done: Sequence[WorkOutcome]) -> Iterator[ResultRow]:
    reasons = Counter(outcome.release_reason for outcome in done if outcome.release_reason)
    for reason, count in reasons.most_common():
        yield (f"  released: {printable(reason)}", _count(count))


def _took_more_carbon(outcome: WorkOutcome) -> bool:
    run_now, took = outcome.run_now.carbon_g, outcome.took.carbon_g
    return run_now is not None and took is not None and took > run_now


def _lost_cell(lost: Mapping[LossReason, int | None]) -> Cell:
    if not lost:
        return Cell("none")
    texts = (
        f"{'unknown number' if count is None else _count(count)} ({reason.value})"
        for reason, count in lost.items()
    )
    return Cell(", ".join(texts), "worse")


def _count(count: int) -> str:
    return f"{count:,}"


def _signed(value: float) -> str:
    return f"{value:+.1f}" if round(value, 1) else "0.0"
