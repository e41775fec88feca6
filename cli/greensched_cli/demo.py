"""`greensched demo`: a real control plane, one workload placed twice, both bills."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table

from greensched_testbed import replay
from greensched_testbed.binaries import control_plane_programs
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.cluster import GreenSchedProcesses
from greensched_testbed.demo.results import RunResult
from greensched_testbed.demo.run import (
    ASSUMED,
    DEFAULT,
    OURS,
    DemoOptions,
    DemoOutcome,
    Told,
    run_demo,
)
from greensched_testbed.demo.run import workload as checked_workload
from greensched_testbed.demo.tables import Row, comparison_rows, group_rows
from greensched_testbed.traces import TimeUnit


def demo(
    trace: Annotated[
        Path | None, typer.Option(help="Workload: openb, GAIA or plain CSV, .gz or not.")
    ] = None,
    pods: Annotated[int, typer.Option(min=2, help="Pods to place, drawn from the trace.")] = 300,
    seed: Annotated[int, typer.Option(help="Of workload, draw and grid.")] = 1,
    time_unit: Annotated[
        TimeUnit | None, typer.Option(help="Unit of a GAIA trace's times: s or h.")
    ] = None,
    skip_faulty: Annotated[
        bool, typer.Option(help="Leave out the trace's faulty rows instead of refusing it.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=5.0, help="Squeeze six hours of arrivals into so many seconds.")
    ] = 40.0,
    output: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("build/demo"),
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave it running until Ctrl-C, to look around.")
    ] = False,
) -> None:
    """Place one workload twice, by GreenSched and by default, and compare the bills."""
    console = Console(highlight=False, width=None if Console().is_terminal else 160)
    options = DemoOptions(output, pods, seed, seconds, trace, time_unit, skip_faulty)
    chosen = checked_workload(options)  # a bad file is refused before anything is built
    console.print(f"{len(chosen.tasks)} pods: {chosen.source}")
    for note in (*chosen.notes, *(f"left out: {fault}" for fault in chosen.faults)):
        console.print(f"  {note}")
    control_plane_programs()
    began = time.monotonic()
    with ControlPlane() as plane, _bars(console) as bars:
        console.print(
            f"control plane up in {plane.start_s:.0f} s at {plane.url}, logs in "
            f"{plane.folder / 'logs'}"
        )
        greensched = GreenSchedProcesses(plane, ASSUMED)
        outcome = run_demo(plane, greensched, options, _told(console, bars, pods))
        bars.stop()
        _print_outcome(console, outcome)
        console.print(f"summary: {output / 'summary.json'}", soft_wrap=True)
        console.print(f"took {time.monotonic() - began:.0f} s")
        if keep:
            _keep(console, plane)


def _print_outcome(console: Console, outcome: DemoOutcome) -> None:
    tables = (
        ("side by side", comparison_rows(outcome.ours, outcome.default)),
        ("by grid zone", group_rows(*_both(outcome), "by_zone")),
        ("by hardware generation", group_rows(*_both(outcome), "by_generation")),
    )
    for title, rows in tables:
        console.print()
        console.print(_table(title, rows))
    console.print()
    console.print(f"report: {outcome.report}", soft_wrap=True)


def _both(outcome: DemoOutcome) -> tuple[RunResult, RunResult]:
    return outcome.ours, outcome.default


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("pods placed"),
        console=console,
        disable=not console.is_terminal,
    )


def _told(console: Console, bars: Progress, pods: int) -> Told:
    tasks: dict[str, TaskID] = {}

    def progress(scheduler: str, now: replay.Progress) -> None:
        if scheduler not in tasks:
            tasks[scheduler] = bars.add_task(scheduler, total=now.total)
            if not console.is_terminal:
                console.print(f"{scheduler}: placing {now.total} pods")
        bars.update(tasks[scheduler], completed=now.bound)
        if now.bound == now.total and not console.is_terminal and now.finished == 0:
            console.print(f"{scheduler}: all placed")

    return Told(step=console.print, progress=progress)


def _table(title: str, rows: Sequence[Row]) -> Table:
    head, *body = rows
    table = Table(title=title, title_justify="left", box=None, header_style="bold")
    for number, column in enumerate(head):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=True)
    for row in body:
        table.add_row(*row)
    return table


def _keep(console: Console, plane: ControlPlane) -> None:
    program = Path(sys.executable).parent / "greensched"
    console.print("\nIt keeps running until Ctrl-C. In another terminal:")
    for line in (
        f"export KUBECONFIG={plane.kubeconfig}",
        f"{plane.programs / 'kubectl'} get pods -n demo-{DEFAULT} -o wide",
        f"{program} nodes",
        f"{program} explain -n demo-{OURS} task-0",
    ):
        console.print(f"  {line}", soft_wrap=True)
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        console.print("stopping")
