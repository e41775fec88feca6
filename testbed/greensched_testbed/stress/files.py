"""Writes a benchmark's results: summary.json, jobs.csv, report.html and plots as PNG."""

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from greensched_testbed.stress.amounts import is_estimated
from greensched_testbed.stress.plots import write_benchmark_plots
from greensched_testbed.stress.report import write_benchmark_report
from greensched_testbed.stress.results import StressResult
from greensched_testbed.stress.run import (
    BenchmarkedCluster,
    BenchmarkOptions,
    BenchmarkOutcome,
)
from greensched_testbed.stress.suite import Suite

_COLUMNS = (
    "round", "strategy", "job", "kind", "cores", "gpus", "deadline_s", "node", "end",
    "created_at", "bound_at", "started_at", "finished_at", "completion_s", "missed", "why",
)  # fmt: skip


def write_benchmark_results(folder: Path, outcome: BenchmarkOutcome) -> Path:
    """Write all files into a folder, and return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "summary.json").write_text(json.dumps(benchmark_summary(outcome), indent=2) + "\n")
    with open(folder / "jobs.csv", "w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(_COLUMNS)
        for result in outcome.results:
            lines.writerows(_job_rows(result))
    write_benchmark_plots(folder, outcome)
    write_benchmark_report(folder / "report.html", outcome)
    return folder / "report.html"


def intended_run(
    suite: Suite, options: BenchmarkOptions, cluster: BenchmarkedCluster
) -> dict[str, Any]:
    """Return what would run and where, as summary.json names it, with the Jobs of the suite."""
    return {
        **_setup(suite, options, cluster),
        "strategies": [strategy.name for strategy in options.strategies],
        "jobs": [asdict(job) for job in suite.jobs],
    }


def _setup(suite: Suite, options: BenchmarkOptions, cluster: BenchmarkedCluster) -> dict[str, Any]:
    return {
        "suite": {
            "digest": suite.digest,
            **asdict(options.suite),
            "core_seconds": suite.core_seconds,
        },
        "rounds": options.rounds,
        "baseline": options.strategies[0].name,
        "cluster": asdict(cluster),
    }


def benchmark_summary(outcome: BenchmarkOutcome) -> dict[str, Any]:
    """Return the content of summary.json; an unknown value is None, never 0."""
    return {
        **_setup(outcome.suite, outcome.options, outcome.cluster),
        "currency": outcome.currency,
        "meter": outcome.meter,
        "is_estimated": None if outcome.meter is None else is_estimated(outcome.meter),
        "strategies": {
            name: {key: asdict(figure) for key, figure in figures.items()}
            for name, figures in outcome.figures.items()
        },
        "runs": [_run(result) for result in outcome.results],
        "notes": list(outcome.notes),
    }


def _run(result: StressResult) -> Mapping[str, Any]:
    played = result.played
    return {
        "round": played.round + 1,
        "strategy": played.strategy.name,
        "scheduler": played.strategy.scheduler,
        "started_at": played.started_at,
        "ended_at": played.ended_at,
        "timed_out": played.timed_out,
        "grid": {zone: asdict(state) for zone, state in played.grid.items()},
        "meters": {meter: asdict(amounts) for meter, amounts in result.amounts.items()},
    }


def _job_rows(result: StressResult) -> list[tuple[Any, ...]]:
    played = result.played
    return [
        (
            played.round + 1, played.strategy.name, run.job.name, run.job.kind.value,
            run.job.cores, run.job.gpus, run.job.deadline_s, run.node, run.end, run.created_at,
            run.bound_at, run.started_at, run.finished_at, run.completion_s, run.has_missed,
            run.why,
        )
        for run in played.runs
    ]  # fmt: skip
