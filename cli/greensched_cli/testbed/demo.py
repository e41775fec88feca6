"""`greensched demo`: run one workload three times on a real control plane; compare the bills.

The verb imports the demo when it runs, so that --help answers immediately.
"""

from pathlib import Path
from typing import Annotated

import typer

from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output
from greensched_cli.testbed.trace_options import Pods, SkipFaulty, with_trace_options
from greensched_simulator.formats.trace_format import NO_OPTIONS, TraceOptions
from greensched_simulator.formats.traces import FORMAT_NAMES


@needs("testbed", "greensched demo")
@with_trace_options
def demo(
    trace: Annotated[
        Path | None, typer.Option(help=f"Trace file, in one of these formats: {FORMAT_NAMES}.")
    ] = None,
    pods: Pods = 300,
    seed: Annotated[int, typer.Option(help="Random seed of workload, drawing and grid.")] = 1,
    trace_options: TraceOptions = NO_OPTIONS,
    skip_faulty: SkipFaulty = False,
    seconds: Annotated[
        float, typer.Option(min=5.0, help="Compress six hours of arrivals into this many seconds.")
    ] = 30.0,
    sleep: Annotated[
        bool, typer.Option("--sleep", help="Let empty nodes sleep: they draw no idle watts.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("build/demo"),
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the cluster running until Ctrl-C.")
    ] = False,
    output: AsOutput = Output.TABLE,
) -> None:
    """Run one workload three times (default, placed, held) and compare the bills."""
    from greensched_cli.testbed.demo_terminal import show_demo
    from greensched_testbed.demo.run import DemoOptions

    options = DemoOptions(out, pods, seed, seconds, trace, trace_options, skip_faulty, sleep)
    raise typer.Exit(show_demo(options, output, keep=keep))
