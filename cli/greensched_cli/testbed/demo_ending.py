"""The end of a demo: keeping it running until Ctrl-C, and reporting what is left then."""

import sys
import time
from pathlib import Path

from rich.console import Console

from greensched_cli.interrupts import exit_status_of
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.run import OURS, DemoOutcome
from greensched_testbed.errors import ProcessDied

_LOOK_EVERY_S = 1.0


def keep_running(console: Console, plane: ControlPlane, outcome: DemoOutcome) -> None:
    """Print commands to try, then each process that ends, until KeyboardInterrupt."""
    for line in _hints(plane, outcome):
        console.print(line, soft_wrap=True)
    reported: set[str] = set()
    while True:
        for process in plane.processes.all():
            try:
                process.check()
            except ProcessDied as fault:
                if process.name not in reported:
                    console.print(f"{fault}\nThe rest goes on; Ctrl-C ends it.", soft_wrap=True)
                reported.add(process.name)
        time.sleep(_LOOK_EVERY_S)


def _hints(plane: ControlPlane, outcome: DemoOutcome) -> list[str]:
    program = Path(sys.executable).parent / "greensched"
    (_, pod), (namespace, job) = outcome.a_pod.split("/"), outcome.a_held_job.split("/")
    commands = {
        f"export KUBECONFIG={plane.kubeconfig}": "",
        f"{program} status -n {namespace}": "what waits, until when, for what saving",
        f"{program} status -n {namespace} {job}": "one Job in full",
        f"{program} release -n {namespace} {job}": "start it now; status --released shows it then",
        f"{program} explain -n {namespace} {pod}": "why a pod was placed on its node",
        f"{program} nodes": "",
        f"{plane.programs / 'kubectl'} get pods -n demo-{OURS} -o wide": "that run's pods",
    }
    return [
        "\nThe demo keeps running until Ctrl-C, now in real time. On the synthetic grid it is six "
        "in the morning; solar power peaks at noon, six hours from now.",
        "In another terminal:",
        *(f"  {command}{f'  # {what}' if what else ''}" for command, what in commands.items()),
    ]


def report_end(
    console: Console, plane: ControlPlane, ended: KeyboardInterrupt, *, is_done: bool
) -> int:
    """Print what an interrupted demo stopped and removed, and return its exit status.

    The status is 0 if its results were there and nothing is left, else that of the interrupt.
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
    return 0 if is_done and not left else exit_status_of(ended)
