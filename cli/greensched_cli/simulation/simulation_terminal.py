"""Simulations on a terminal: their progress, their results, and the path of the report."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from greensched_cli.interrupts import exit_status_of, terminated_as_interrupted
from greensched_cli.output import Output, print_document
from greensched_cli.simulation.compiling import compiling_shown
from greensched_cli.terminal import plain_console, print_table
from greensched_core.clock import WallClock
from greensched_core.signals.timestamps import format_timestamp
from greensched_simulator.policy import Policy
from greensched_simulator.reports.report import write_run_report
from greensched_simulator.results.billed_time import how_long_billed
from greensched_simulator.results.cells import ResultRow
from greensched_simulator.results.comparison import Results, Round, compare
from greensched_simulator.results.completion_tables import (
    completion_rows,
    decision_lines,
    how_completed,
)
from greensched_simulator.results.optional_metrics import supply_rows
from greensched_simulator.results.run_folder import FinishedRun, RecordedRun, RunFolder
from greensched_simulator.results.tables import (
    captured_rows,
    change_rows,
    done_rows,
    embodied_text,
    how_compared,
    lever_rows,
    losses,
    outcome_rows,
    taken_rows,
)
from greensched_simulator.runs.simulation import ProgressCallback
from greensched_simulator.world.scenario_loading import Scenario

RUNS = Path("build/runs")


@dataclass(frozen=True, slots=True)
class SimulationRequest:
    """The simulations that the command line asks for."""

    scenario: Scenario
    scenario_file: Path
    policies: tuple[Policy, ...]
    baseline: Policy | None
    seed: int | None  # None: the scenario's
    seeds: int  # number of seeds, starting at `seed`
    out: Path | None
    kind: str  # part of the folder's name if `out` is None
    output: Output
    with_bound: bool = False


def run_and_print(asked: SimulationRequest) -> int:
    """Run the simulations, print results and write their folder; return the exit status.

    Raises BadInput for a folder that is not empty.
    """
    run = _run(asked)
    out = asked.out or RUNS / f"{asked.scenario.name}-{asked.kind}-{_stamp(run.started_at)}"
    folder, console = RunFolder(out, run), plain_console(to_stderr=asked.output != Output.TABLE)
    try:
        with terminated_as_interrupted():
            _run_into(folder, console, asked)
    except KeyboardInterrupt as ended:
        console.print(f"interrupted: {_kept(folder)}", soft_wrap=True)
        return exit_status_of(ended)
    except OSError as fault:  # such as a full disk
        print(f"greensched: {fault}; {_kept(folder)}", file=sys.stderr)
        return 1
    return 0


def _run_into(folder: RunFolder, console: Console, asked: SimulationRequest) -> None:
    began = time.monotonic()
    finished = _simulated(console, folder, with_bound=asked.with_bound)
    if asked.output == Output.TABLE:
        _print_results(console, finished)
    else:
        print_document(finished.document(), asked.output)
    report = write_run_report(finished)
    console.print(f"report: {report}", soft_wrap=True)
    console.print(f"all rows: {folder.folder}", soft_wrap=True)
    console.print(f"took {time.monotonic() - began:.1f} s")


def _kept(folder: RunFolder) -> str:
    if folder.is_whole:
        return f"all rows are in {folder.folder}, `greensched report` draws its report"
    return "nothing is kept"


def _run(asked: SimulationRequest) -> RecordedRun:
    scenario = asked.scenario
    first = scenario.seed if asked.seed is None else asked.seed
    return RecordedRun(
        scenario=scenario,
        scenario_file=asked.scenario_file,
        policies=asked.policies,
        baseline=asked.baseline,
        seeds=tuple(range(first, first + asked.seeds)),
        command=("greensched", *sys.argv[1:]),
        started_at=format_timestamp(round(WallClock().now())),
    )


def _stamp(started_at: str) -> str:
    return started_at.translate(str.maketrans("", "", "-:"))


def _simulated(console: Console, folder: RunFolder, *, with_bound: bool) -> FinishedRun:
    run = folder.run
    with folder, _progress(console, run) as (on_run, on_round):
        rounds = compare(run.scenario, run.policies, run.seeds, on_run, with_bound=with_bound)
        for done in rounds:
            folder.add(done)
            on_round(done)
        return folder.finish()


@contextmanager
def _progress(
    console: Console, run: RecordedRun
) -> Iterator[tuple[ProgressCallback, Callable[[Round], None]]]:
    """Show progress: a bar on a terminal, a line for each seed elsewhere."""
    total = len(run.policies) * len(run.seeds)
    console.print(
        f"{run.scenario.name}: {_counted(len(run.policies), 'policy', 'policies')}, "
        f"{_counted(len(run.seeds), 'seed', 'seeds')}"
    )
    bars = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("runs"),
        TimeElapsedColumn(), console=console, disable=not console.is_terminal,
    )  # fmt: skip
    with bars, compiling_shown(console):
        task = bars.add_task(f"seed {run.seeds[0]}", total=total)

        def on_run(policy: Policy, seed: int) -> None:
            bars.update(task, advance=1, description=f"seed {seed}")

        def on_round(done: Round) -> None:
            if not console.is_terminal:
                console.print(f"seed {done.world.seed}: done")

        yield on_run, on_round


def _print_results(console: Console, finished: FinishedRun) -> None:
    results, currency = finished.results, str(finished.summary["currency"])
    for note in finished.summary["notes"]:
        console.print(f"  {note}")
    for title, rows in _tables(results, currency):
        console.print()
        print_table(console, title, rows)
    console.print()
    if results.baseline is not None:
        console.print(how_completed(results))
        console.print(how_compared(results))
        console.print(how_long_billed(results))
        for loss in losses(results):
            console.print(loss)
    console.print("Carbon is operational and location-based; watts are those of power curves.")
    if embodied := embodied_text(results):
        console.print(embodied)


def _tables(results: Results, currency: str) -> Iterator[tuple[str, Sequence[ResultRow]]]:
    if results.baseline is None:
        policy = results.policies[0]
        rows = outcome_rows(results.outcomes[policy][0], currency)
        rows += decision_lines(results, policy)
        yield f"{policy.name}, seed {results.seeds[0]}", [("", ""), *rows]
        return
    yield "work done, and how long jobs waited; means over seeds", done_rows(results)
    yield (
        "completion times, and how full the cluster was; means over seeds",
        completion_rows(results),
    )
    yield "energy, carbon and cost", taken_rows(results, currency)
    supply = supply_rows(results)
    if supply[1:]:
        yield "sources of energy, in zones with panels", supply
    yield f"change against {results.baseline.label}", change_rows(results)
    shares = captured_rows(results)
    if shares[1:]:
        yield "share of the possible saving; 100 % is the bound", shares
    levers = lever_rows(results)
    if levers[1:]:
        yield "what each lever adds (docs/simulator.md)", levers


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"
