"""How a demo ends: kept running until Ctrl-C, and what is left of it then."""

import sys
import time
from pathlib import Path

from rich.console import Console

from greensched_cli.interrupts import status_of
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.run import OURS, DemoOutcome
from greensched_testbed.errors import ProcessDied

_LOOK_EVERY_S = 1.0


def keep_running(console: Console, plane: ControlPlane, outcome: DemoOutcome) -> None:
    """Print how to look around, and then every process that ends, until KeyboardInterrupt."""
    for line in _hints(plane, outcome):
        console.print(line, soft_wrap=True)
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


def _hints(plane: ControlPlane, outcome: DemoOutcome) -> list[str]:
    program = Path(sys.executable).parent / "greensched"
    (_, pod), (namespace, job) = outcome.a_pod.split("/"), outcome.a_held_job.split("/")
    commands = {
        f"export KUBECONFIG={plane.kubeconfig}": "",
        f"{program} status -n {namespace}": "what waits, until when, for what saving",
        f"{program} status -n {namespace} {job}": "one of it in full",
        f"{program} release -n {namespace} {job}": "start it now; status --released tells of it",
        f"{program} explain -n {namespace} {pod}": "why a pod went where it went",
        f"{program} nodes": "",
        f"{plane.programs / 'kubectl'} get pods -n demo-{OURS} -o wide": "that run's pods",
    }
    return [
        "\nIt keeps running until Ctrl-C, from here on by the wall's clock: it is six in the "
        "morning of the made-up grid, and noon, when the sun stands high, is six hours away.",
        "In another terminal:",
        *(f"  {command}{f'  # {what}' if what else ''}" for command, what in commands.items()),
    ]


def told_end(
    console: Console, plane: ControlPlane, ended: KeyboardInterrupt, *, is_done: bool
) -> int:
    """Say what an interrupted demo stopped and removed, and return its exit status.

    0 when its results were there and nothing is left, else that of a command ended so.
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
    return 0 if is_done and not left else status_of(ended)
