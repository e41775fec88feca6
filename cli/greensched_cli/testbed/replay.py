"""`greensched replay`: replay a workload on any cluster.

The verb imports the code for the cluster when it runs, so that --help answers immediately.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from greensched_cli.explain.decisions import Context, Kubeconfig
from greensched_cli.extras import needs
from greensched_cli.output import AsOutput, Output, print_document
from greensched_cli.reading.api_server import api_access, named_kubeconfig, usual_namespace
from greensched_cli.testbed.trace_options import Pods, SkipFaulty, with_trace_options
from greensched_core import labels
from greensched_simulator.formats.trace_format import NO_OPTIONS, TraceOptions
from greensched_simulator.formats.traces import FORMAT_NAMES, load_trace
from greensched_simulator.formats.workload import Trace, as_pods, compressed, sampled
from greensched_testbed.progress import LiveLine

if TYPE_CHECKING:
    from greensched_core.kubernetes_api import ApiAccess
    from greensched_testbed.replay import Replay, ReplayOptions, ReplayProgress

_PLAIN_EVERY_S = 5.0


TraceFile = Annotated[
    Path, typer.Argument(help=f"Trace file, in one of these formats: {FORMAT_NAMES}.")
]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", help="Existing namespace for the pods; by default the context's."
    ),
]
Scheduler = Annotated[str, typer.Option(help="schedulerName of the pods.")]
Span = Annotated[
    float, typer.Option(min=1.0, help="Compress arrivals and runtimes into this many seconds.")
]
Patience = Annotated[
    float,
    typer.Option(min=0.0, help="Seconds to wait after the last arrival before giving up."),
]
Seed = Annotated[int, typer.Option(help="Random seed for drawing pods.")]


@needs("testbed", "greensched replay")
@with_trace_options
def replay(
    trace: TraceFile,
    namespace: Namespace = None,
    scheduler: Scheduler = labels.SCHEDULER_NAME,
    pods: Pods = 300,
    span_s: Span = 60.0,
    wait_s: Patience = 120.0,
    seed: Seed = 1,
    trace_options: TraceOptions = NO_OPTIONS,
    skip_faulty: SkipFaulty = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: AsOutput = Output.TABLE,
) -> None:
    """Create a trace's pods as they arrive, and print how long each waited for a node.

    Exits with 1 if a pod found no node. The pods stay: delete them with the namespace.
    """
    from greensched_cli.terminal import plain_console
    from greensched_testbed.replay import ReplayOptions

    whole = load_trace(trace, trace_options, skip_faulty=skip_faulty)
    squeezed = compressed(sampled(as_pods(whole), pods, seed), span_s).trace
    console = plain_console(to_stderr=output != Output.TABLE)
    for note in squeezed.notes:
        console.print(note, soft_wrap=True)
    access = api_access(kubeconfig, context)
    used = named_kubeconfig(kubeconfig, context)
    namespace = namespace or usual_namespace(kubeconfig, context)
    console.print(f"onto {access.base_url} ({used})", soft_wrap=True)
    console.print(f"{len(squeezed.tasks)} pods for {scheduler} in namespace {namespace}")
    options = ReplayOptions(
        namespace=namespace, scheduler_name=scheduler, until="bound", settle_timeout_s=wait_s,
        sleeps=True,
    )  # fmt: skip
    record = asyncio.run(_played(squeezed, access, options))
    _print(record, options, output)
    if record.unplaced:
        raise typer.Exit(1)


def _print(record: "Replay", options: "ReplayOptions", output: Output) -> None:
    namespace, scheduler = options.namespace, options.scheduler_name
    if output != Output.TABLE:
        print_document(result_document(record, namespace, scheduler), output)
        return
    for line in result_lines(record, namespace, scheduler):
        print(line)


async def _played(trace: Trace, access: "ApiAccess", options: "ReplayOptions") -> "Replay":
    """Replay the trace and show progress on stderr, also while nothing happens."""
    from greensched_testbed.replay import ReplayProgress, replay

    loop = asyncio.get_running_loop()
    began, latest = loop.time(), ReplayProgress(len(trace.tasks), 0, 0, 0)
    limit_s = trace.span_s * options.wall_s_per_trace_s + options.settle_timeout_s

    def note(now: ReplayProgress) -> None:
        nonlocal latest
        latest = now

    async def show(line: LiveLine) -> None:
        while True:
            line.update(progress_text(latest, loop.time() - began, limit_s))
            await asyncio.sleep(0.5)

    with LiveLine(_PLAIN_EVERY_S) as line:
        showing = asyncio.create_task(show(line))
        try:
            return await replay(trace, access, options, on_progress=note)
        finally:
            showing.cancel()


def progress_text(now: "ReplayProgress", elapsed_s: float, limit_s: float) -> str:
    """Return the progress of a replay as one line."""
    return (
        f"{elapsed_s:.0f} s: {now.created} of {now.total} pods created, {now.bound} placed; "
        f"gives up after {limit_s:.0f} s"
    )


def result_lines(record: "Replay", namespace: str, scheduler: str) -> Iterator[str]:
    """Yield how many pods were placed and, for the others, the scheduler's reasons."""
    from greensched_testbed.replay import pending_reasons

    waits = _waits_s(record)
    yield f"{len(waits)} of {len(record.runs)} pods placed in {namespace}"
    if waits:
        yield f"waited {median(waits):.2f} s in the median, {waits[-1]:.2f} s at most"
    if record.unplaced:
        yield f"{len(record.unplaced)} found no node:"
        yield from (f"  {line}" for line in pending_reasons(record, scheduler))


def result_document(record: "Replay", namespace: str, scheduler: str) -> dict[str, Any]:
    """Return the same as JSON values; null means that no pod was placed, or no reason is known."""
    waits = _waits_s(record)
    return {
        "namespace": namespace,
        "scheduler": scheduler,
        "pods": len(record.runs),
        "podsPlaced": len(waits),
        "waitMedianSeconds": median(waits) if waits else None,
        "waitMaxSeconds": waits[-1] if waits else None,
        "unplaced": [
            {"pod": run.task.name, "reason": run.why_pending or None} for run in record.unplaced
        ],
    }


def _waits_s(record: "Replay") -> list[float]:
    """Return how long each placed pod waited for its node, in ascending order."""
    return sorted(
        run.bound_at - run.created_at
        for run in record.runs
        if run.bound_at is not None and run.created_at is not None
    )
