"""A ledger's report as JSON for programs: the numbers behind the tables of `report`.

Times are RFC 3339 in UTC; null means unknown. Fields are added, never renamed.
"""

import math
from collections.abc import Sequence
from typing import Any

from greensched_cli.ledger.outcomes import is_late, is_overdue, is_waiting
from greensched_cli.ledger.savings import RUN_NOW_BASELINE, Savings, SavingsFigure
from greensched_cli.ledger.tables import LedgerReport, losses_of
from greensched_core.signals.timestamps import format_timestamp


def report_json(report: LedgerReport) -> dict[str, Any]:
    """Return a report's content as JSON values."""
    span, done = report.span, report.done.outcomes
    return {
        "source": report.source,
        "since": format_timestamp(round(span.since)),
        "until": format_timestamp(round(span.until)),
        "namespace": span.namespace,
        "baseline": RUN_NOW_BASELINE,
        "started": _savings(report.done),
        "shadow": _savings(report.shadow),
        "waitingCount": sum(is_waiting(outcome, span.until) for outcome in report.unstarted),
        "lateCount": sum(map(is_late, done)),
        "overdueCount": sum(
            is_overdue(outcome, span.until) for outcome in (*done, *report.unstarted)
        ),
        "decided": {str(what): count for what, count in report.decided.items()},
        "placedByUs": report.placed_by_us,
        "lostRecords": {str(reason): count for reason, count in report.lost.items()},
        "losses": losses_of(report.done),
        "notes": list(report.notes),
    }


def _savings(savings: Savings) -> dict[str, Any]:
    return {
        "workloads": len(savings.outcomes),
        "whole": _figures(savings.whole),
        "byNamespace": {name: _figures(each) for name, each in savings.by_namespace.items()},
    }


def _figures(figures: Sequence[SavingsFigure]) -> list[dict[str, Any]]:
    return [
        {
            "name": figure.name,
            "unit": figure.unit,
            "workloads": figure.workloads,
            "runNow": figure.run_now,
            "took": figure.took,
            "saved": figure.saved,
            "changePercent": _known(figure.percent.mean),
            "changePercentLow": _known(figure.percent.low),
            "changePercentHigh": _known(figure.percent.high),
        }
        for figure in figures
    ]


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None
