"""`greensched demo`: a real control plane, one workload run three times, and the bills.

The demo itself is imported where the verb runs, so that --help answers at once.
"""

from pathlib import Path
from typing import Annotated

import typer

from greensched_simulator.formats.google_events import parse_machine
from greensched_simulator.formats.traces import TimeUnit


def demo(
    trace: Annotated[
        Path | None, typer.Option(help="Trace file: openb, GAIA, Google 2011, SWF or plain CSV.")
    ] = None,
    pods: Annotated[int, typer.Option(min=2, help="Number of pods to draw from the trace.")] = 300,
    seed: Annotated[int, typer.Option(help="Random seed of workload, drawing and grid.")] = 1,
    time_unit: Annotated[
        TimeUnit | None, typer.Option(help="Unit of times in a GAIA trace: s or h.")
    ] = None,
    largest_machine: Annotated[
        str | None,
        typer.Option(help="Largest machine of a Google trace: CORES,MEMORY, such as 64,256Gi."),
    ] = None,
    skip_faulty: Annotated[
        bool, typer.Option(help="Leave out faulty rows instead of refusing the trace.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=5.0, help="Compress six hours of arrivals into this many seconds.")
    ] = 30.0,
    sleep: Annotated[
        bool, typer.Option("--sleep", help="Let empty nodes sleep: they draw no idle watts.")
    ] = False,
    output: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("build/demo"),
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the cluster running until Ctrl-C.")
    ] = False,
) -> None:
    """Run one workload three times (default, placed, held) and compare the bills."""
    from greensched_cli.testbed.demo_terminal import show_demo
    from greensched_testbed.demo.run import DemoOptions

    largest = None if largest_machine is None else parse_machine(largest_machine)
    options = DemoOptions(
        output, pods, seed, seconds, trace, time_unit, largest, skip_faulty, sleep
    )
    raise typer.Exit(show_demo(options, keep=keep))
