"""The benchmark on a terminal: its progress, then a table of the strategies."""

import asyncio
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from greensched_cli.interrupts import cancelling_asyncio, exit_status_of
from greensched_cli.output import Output, print_document
from greensched_cli.terminal import plain_console, print_table
from greensched_core.clock import WallClock
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_extender.settings import ExtenderSettings
from greensched_testbed import replay
from greensched_testbed.stress.files import benchmark_summary, intended_run, write_benchmark_results
from greensched_testbed.stress.ground import looked_at
from greensched_testbed.stress.run import (
    BenchmarkedCluster,
    BenchmarkOptions,
    BenchmarkOutcome,
    ProgressOutput,
    cluster_of,
    intention,
    run_benchmark,
)
from greensched_testbed.stress.suite import Suite, make_suite
from greensched_testbed.stress.tables import fact_rows, meter_rows, meter_text, strategy_rows


def show_intention(access: ApiAccess, options: BenchmarkOptions, output: Output) -> None:
    """Print what would be run, without running it."""
    suite, cluster = asyncio.run(_intended(access, options))
    if output != Output.TABLE:
        print_document(intended_run(suite, options, cluster), output)
        return
    console, text = plain_console(), intention(suite, options, cluster)
    console.print(text, soft_wrap=True)
    head = ("Job", "arrives, s", "cores", "MiB", "GPUs", "expected, s", "deadline, s")
    rows = [
        (
            job.name, f"{job.arrival_s:.0f}", f"{job.cores:g}", f"{job.memory_bytes / 2**20:.0f}",
            str(job.gpus), f"{job.runtime_s:.0f}",
            "" if job.deadline_s is None else f"{job.deadline_s:.0f}",
        )
        for job in suite.jobs
    ]  # fmt: skip
    print_table(console, "the suite", [head, *rows])
    console.print("\nNothing was run: --cluster runs the suite on the cluster.")


async def _intended(
    access: ApiAccess, options: BenchmarkOptions
) -> tuple[Suite, BenchmarkedCluster]:
    signals = ExtenderSettings.model_construct().grid_signals()
    async with (
        ApiClient(access) as client,
        looked_at(client, options.zone_map, signals, WallClock()) as ground,
    ):
        suite = make_suite(options.suite, ground.room)
        return suite, await cluster_of(client, access, ground)


def show_benchmark(
    access: ApiAccess, options: BenchmarkOptions, folder: Path, output: Output
) -> int:
    """Run the benchmark, print and write the results, and return the exit status.

    The status is 1 if a Job did not complete, 130 after Ctrl-C, and 143 after SIGTERM.
    """
    console = plain_console(to_stderr=output != Output.TABLE)
    try:
        with cancelling_asyncio(), _bars(console) as bars:
            outcome = asyncio.run(run_benchmark(access, options, _progress_output(console, bars)))
    except KeyboardInterrupt as ended:
        console.print("\ninterrupted; the namespace of the current run is deleted")
        return exit_status_of(ended)
    if output == Output.TABLE:
        _print(console, outcome)
    else:
        print_document(benchmark_summary(outcome), output)
    report = write_benchmark_results(folder, outcome)
    console.print(f"\nreport: {report}\nsummary: {folder / 'summary.json'}", soft_wrap=True)
    jobs = {job.name for job in outcome.suite.jobs}
    return 0 if all(result.completed == jobs for result in outcome.results) else 1


def _print(console: Console, outcome: BenchmarkOutcome) -> None:
    for name, text in fact_rows(outcome):
        console.print(f"{name}: {text}", soft_wrap=True)
    console.print()
    title = f"mean of {outcome.options.rounds} rounds (least to most) and change; energy by "
    print_table(console, title + meter_text(outcome.meter), strategy_rows(outcome))
    if by_meter := meter_rows(outcome):
        console.print()
        print_table(console, "by each meter that saw all runs", by_meter)


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(),
        TextColumn("Jobs ended, {task.fields[bound]} placed"),
        console=console, disable=not console.is_terminal,
    )  # fmt: skip


def _progress_output(console: Console, bars: Progress) -> ProgressOutput:
    tasks: dict[str, TaskID] = {}
    done: set[str] = set()

    def progress(title: str, now: replay.ReplayProgress) -> None:
        if title not in tasks:
            tasks[title] = bars.add_task(title, total=now.total, bound=0)
            if not console.is_terminal:
                console.print(f"{title}: {now.total} Jobs")
        bars.update(tasks[title], completed=now.finished, bound=now.bound)
        if now.finished == now.total and title not in done and not console.is_terminal:
            console.print(f"{title}: all ended")
            done.add(title)

    return ProgressOutput(step=lambda text: console.print(text, soft_wrap=True), progress=progress)
