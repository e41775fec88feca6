"""How a demo ends: kept running until Ctrl-C, and what is left of it then."""

import sys
import time
from pathlib import Path

from rich.console import Console

from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.run import DEFAULT, OURS, DemoOutcome
from greensched_testbed.errors import ProcessDied

INTERRUPTED = 130  # as shells say that SIGINT ended a command
_LOOK_EVERY_S = 1.0


def keep_running(console: Console, plane: ControlPlane, outcome: DemoOutcome) -> None:
    """Print how to look around, and then every process that ends, until KeyboardInterrupt."""
    program = Path(sys.executable).parent / "greensched"
    lines = [
        f"export KUBECONFIG={plane.kubeconfig}",
        f"{plane.programs / 'kubectl'} get pods -n demo-{DEFAULT} -o wide",
        f"{program} nodes",
    ]
    if outcome.a_pod:
        lines.append(f"{program} explain -n demo-{OURS} {outcome.a_pod}")
    console.print("\nIt keeps running until Ctrl-C. In another terminal:")
    for line in lines:
        console.print(f"  {line}", soft_wrap=True)
    console.print(
        f"One second there is {outcome.workload_s_per_s:.0f} s of the workload: explain tells the "
        "squeezed runtimes, and watt-hours, grams and money of these.",
        soft_wrap=True,
    )
    told: set[str] = set()
    while True:
        for process in plane.processes.all():
            try:
                process.check()
            except ProcessDied as fault:
                if process.name not in told:
                    console.print(f"{fault}\nThe rest goes on; Ctrl-C ends it.", soft_wrap=True)
                told.add(process.name)
        time.sleep(_LOOK_EVERY_S)


def told_end(console: Console, plane: ControlPlane, *, is_done: bool) -> int:
    """Say what an interrupted demo stopped and removed, and return its exit status.

    0 when its results were there and nothing is left, else 130.
    """
    started = plane.processes.started()
    left = [f"{each.name} (process {each.pid})" for each in started if each.is_running()]
    left += [str(plane.folder)] if plane.folder.exists() else []
    names = dict.fromkeys(each.name for each in started)
    verb = "ended" if is_done else "interrupted before it was done"
    console.print(
        f"\n{verb}; stopped {', '.join(names) or 'nothing'}; removed {plane.folder}"
        if not left
        else f"\n{verb}, but still there: {', '.join(left)}",
        soft_wrap=True,
    )
    return 0 if is_done and not left else INTERRUPTED
