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
        Path | None, typer.Option(help="Workload: openb, GAIA, Google 2011, SWF, plain CSV.")
    ] = None,
    pods: Annotated[int, typer.Option(min=2, help="Pods to place, drawn from the trace.")] = 300,
    seed: Annotated[int, typer.Option(help="Of workload, draw and grid.")] = 1,
    time_unit: Annotated[
        TimeUnit | None, typer.Option(help="Unit of a GAIA trace's times: s or h.")
    ] = None,
    largest_machine: Annotated[
        str | None, typer.Option(help="Of a Google trace: CORES,MEMORY, such as 64,256Gi.")
    ] = None,
    skip_faulty: Annotated[
        bool, typer.Option(help="Leave out the trace's faulty rows instead of refusing it.")
    ] = False,
    seconds: Annotated[
        float, typer.Option(min=5.0, help="Squeeze six hours of arrivals into so many seconds.")
    ] = 30.0,
    sleep: Annotated[
        bool, typer.Option("--sleep", help="Empty nodes sleep: no idle watts, in cost and bill.")
    ] = False,
    output: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("build/demo"),
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave it running until Ctrl-C, to look around.")
    ] = False,
) -> None:
    """Run one workload by default, placed by GreenSched, and held by it; compare the bills."""
    from greensched_cli.testbed.demo_terminal import show_demo
    from greensched_testbed.demo.run import DemoOptions

    largest = None if largest_machine is None else parse_machine(largest_machine)
    options = DemoOptions(
        output, pods, seed, seconds, trace, time_unit, largest, skip_faulty, sleep
    )
    raise typer.Exit(show_demo(options, keep=keep))
