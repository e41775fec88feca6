"""The demo on a terminal: its progress, the bills as tables, and commands to try."""

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from greensched_cli.interrupts import terminated_as_interrupted
from greensched_cli.output import Output, print_document
from greensched_cli.terminal import plain_console, print_table
from greensched_cli.testbed.demo_ending import keep_running, report_end
from greensched_testbed import replay
from greensched_testbed.binaries import control_plane_programs
from greensched_testbed.chart import chart_folder
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.explained import why_carbon_changed
from greensched_testbed.demo.play import DemoProgress
from greensched_testbed.demo.run import DemoOptions, DemoOutcome, run_demo
from greensched_testbed.demo.run import workload as checked_workload
from greensched_testbed.demo.tables import (
    comparison_rows,
    demo_lever_rows,
    group_rows,
    holding_rows,
)


def show_demo(options: DemoOptions, output: Output, *, keep: bool) -> int:
    """Run the demo and print its results; with `keep` leave it running until Ctrl-C.

    Returns the exit status: 130, or 143 after SIGTERM, if it was ended before its results.
    """
    chart_folder()
    chosen = checked_workload(options)  # refuse a bad file before building anything
    console = plain_console(to_stderr=output != Output.TABLE)
    console.print(f"{len(chosen.tasks)} pods: {chosen.source}")
    for note in (*chosen.notes, *(f"left out: {fault}" for fault in chosen.faults)):
        console.print(f"  {note}")
    control_plane_programs()
    plane = ControlPlane()
    is_done = False
    try:
        with terminated_as_interrupted(), plane:
            outcome = _run_and_print(console, plane, options, output, keep=keep)
            is_done = True
            if keep:
                keep_running(console, plane, outcome)
    except KeyboardInterrupt as ended:
        return report_end(console, plane, ended, is_done=is_done)
    return 0


def _run_and_print(
    console: Console, plane: ControlPlane, options: DemoOptions, output: Output, *, keep: bool
) -> DemoOutcome:
    began = time.monotonic()
    with _bars(console) as bars:
        console.print(
            f"control plane up in {plane.start_s:.0f} s at {plane.url}, logs in "
            f"{plane.folder / 'logs'}"
        )
        outcome = run_demo(plane, options, _demo_progress(console, bars), goes_on=keep)
    print_outcome(console, outcome, output)
    console.print(f"report: {outcome.report}", soft_wrap=True)
    console.print(f"summary: {options.output / 'summary.json'}", soft_wrap=True)
    console.print(f"took {plane.start_s + time.monotonic() - began:.0f} s")
    return outcome


def print_outcome(console: Console, outcome: DemoOutcome, output: Output) -> None:
    """Print the results as tables, or the content of summary.json."""
    if output != Output.TABLE:
        print_document(outcome.summary, output)
        return
    results = outcome.results
    runs = results.held, results.default
    tables = (
        ("side by side, simulated: watts by the nodes' curves", comparison_rows(*runs)),
        ("by grid zone", group_rows(*runs, "by_zone")),
        ("by hardware generation", group_rows(*runs, "by_generation")),
        ("held by greensched, times of the workload", holding_rows(results.holding, runs[0].pods)),
        ("what placing saves and what waiting, simulated", demo_lever_rows(results)),
    )
    for title, rows in tables:
        console.print()
        print_table(console, title, rows)
    console.print()
    console.print(why_carbon_changed(results), soft_wrap=True)


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<19}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("pods placed"),
        console=console,
        disable=not console.is_terminal,
    )


def _demo_progress(console: Console, bars: Progress) -> DemoProgress:
    tasks: dict[str, TaskID] = {}
    placed: set[str] = set()

    def progress(scheduler: str, now: replay.ReplayProgress) -> None:
        if scheduler not in tasks:
            tasks[scheduler] = bars.add_task(scheduler, total=now.total)
            if not console.is_terminal:
                console.print(f"{scheduler}: placing {now.total} pods")
        bars.update(tasks[scheduler], completed=now.bound)
        if now.bound == now.total and scheduler not in placed and not console.is_terminal:
            console.print(f"{scheduler}: all placed")
            placed.add(scheduler)

    return DemoProgress(step=console.print, progress=progress)
