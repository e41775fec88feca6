"""`greensched replay`: a workload played onto any cluster.

What talks to the cluster is imported where the verb runs, so that --help answers at once.
"""

import asyncio
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from greensched_core import labels
from greensched_simulator.traces import TimeUnit, load_trace
from greensched_simulator.workload import compressed, sampled

if TYPE_CHECKING:
    from greensched_testbed.replay import Replay


def replay(
    trace: Annotated[Path, typer.Argument(help="openb, GAIA or plain CSV, .gz or not.")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="It must exist.")],
    scheduler: Annotated[
        str, typer.Option(help="schedulerName of the pods.")
    ] = labels.SCHEDULER_NAME,
    pods: Annotated[int, typer.Option(min=2, help="Pods, drawn from the trace.")] = 300,
    span_s: Annotated[
        float, typer.Option(min=1.0, help="Squeeze arrivals and runtimes into so many seconds.")
    ] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the draw.")] = 1,
    time_unit: Annotated[TimeUnit | None, typer.Option(help="Of a GAIA trace: s or h.")] = None,
    skip_faulty: Annotated[bool, typer.Option(help="Leave out faulty rows.")] = False,
    kubeconfig: Annotated[
        Path | None, typer.Option(envvar="GREENSCHED_KUBECONFIG", help="As kubectl's.")
    ] = None,
    context: Annotated[str | None, typer.Option(help="Context of the kubeconfig.")] = None,
) -> None:
    """Create a trace's pods as they arrive and say how long each waited for a node.

    Exits with 1 when a pod found none. The pods stay: delete them with the namespace.
    """
    from greensched_core.kubernetes_api import ApiAccess
    from greensched_testbed import replay as testbed_replay

    whole = load_trace(trace, time_unit=time_unit, skip_faulty=skip_faulty)
    squeezed = compressed(sampled(whole, pods, seed), span_s).trace
    for note in squeezed.notes:
        print(note)
    record = asyncio.run(
        testbed_replay.replay(
            squeezed,
            ApiAccess.from_kubeconfig(kubeconfig, context),
            testbed_replay.ReplayOptions(
                namespace=namespace, scheduler_name=scheduler, until="bound", sleeps=True
            ),
        )
    )
    if not _told_waits(record, namespace):
        raise typer.Exit(1)


def _told_waits(record: "Replay", namespace: str) -> bool:
    waits = sorted(
        run.bound_at - run.created_at
        for run in record.runs
        if run.bound_at is not None and run.created_at is not None
    )
    print(f"{len(waits)} of {len(record.runs)} pods placed in {namespace}")
    if waits:
        print(f"waited {median(waits):.2f} s in the median, {waits[-1]:.2f} s at most")
    if record.unplaced:
        some = ", ".join(run.task.name for run in record.unplaced[:5])
        print(f"no node took {len(record.unplaced)} of them: {some}")
    return not record.unplaced
