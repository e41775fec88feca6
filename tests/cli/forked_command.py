"""`greensched` in a process of its own, forked from one that has imported all it needs.

Imports alone take seconds of processor time in each new process, and these tests start hundreds.
What a new process imports is shown by tests/test_imports.py and tests/cli/test_extras.py.
"""

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

from greensched_cli.__main__ import main

_TIMEOUT_S = 600.0  # the simulator's engine is compiled within, once
_PRELOADED = (
    "greensched_cli.__main__",
    "greensched_cli.simulation.simulation_terminal",
    "greensched_simulator.bounds.bound",
    "greensched_simulator.reports.report",
)
_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload(list(_PRELOADED))


def run_forked(arguments: Sequence[str], environment: Mapping[str, str]) -> CompletedProcess[str]:
    """Return what `greensched` printed and its exit status; raise TimeoutError after ten minutes.

    The command has this working directory and, but for them, no other settings than `environment`.
    """
    with tempfile.TemporaryDirectory() as folder:
        printed = [Path(folder, name) for name in ("stdout", "stderr")]
        process = _forks.Process(
            target=_run, args=(list(arguments), dict(environment), os.getcwd(), printed)
        )
        process.start()
        process.join(_TIMEOUT_S)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"greensched {' '.join(arguments)} took over {_TIMEOUT_S:.0f} s")
        stdout, stderr = (path.read_text(encoding="utf-8") for path in printed)
        return CompletedProcess(["greensched", *arguments], process.exitcode, stdout, stderr)


def _run(
    arguments: list[str], environment: dict[str, str], folder: str, printed: list[Path]
) -> None:
    for descriptor, path in enumerate(printed, start=1):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.dup2(opened, descriptor)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(folder)
    sys.argv = ["greensched", *arguments]
    main()
