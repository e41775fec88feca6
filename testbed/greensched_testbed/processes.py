"""Runs processes that end with us, however we end, unless they are meant to outlive us.

On Linux each child asks the kernel to be killed when its parent dies (prctl PR_SET_PDEATHSIG), so
that not even SIGKILL of the parent leaves one behind. Each has its own process group: Ctrl-C in the
terminal reaches only us, and we stop them in order.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from greensched_testbed.errors import NotReady, ProcessDied

# Runs in the child and replaces itself by the program. 1 is PR_SET_PDEATHSIG; the check of the
# parent detects a death before the prctl took effect.
_ENDS_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the parent is gone")
os.execvp(sys.argv[2], sys.argv[2:])
"""
_GRACE_S = 3.0
_POLL_S = 0.05
_TAIL_LINES = 15

# The kernel's "parent" is the thread that forked. This one lives until the interpreter ends. If a
# caller's worker thread forked, its end would kill the children.
_spawner = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")


@dataclass(frozen=True)
class ManagedProcess:
    """One started program with its log."""

    name: str
    log_file: Path
    popen: subprocess.Popen[bytes]
    started_at: float  # seconds since the epoch, by the kernel

    @property
    def pid(self) -> int:
        """Return the process id, which is also the id of its process group."""
        return self.popen.pid

    def is_running(self) -> bool:
        """Return whether it still runs."""
        return self.popen.poll() is None

    def check(self) -> None:
        """Raise ProcessDied if it has ended."""
        if not self.is_running():
            raise ProcessDied(
                f"{self.name} exited with {self.popen.returncode}; its last output "
                f"({self.log_file}):\n{tail(self.log_file)}"
            )

    def wait_until(self, claim: Callable[[], bool], what: str, timeout_s: float) -> None:
        """Wait until `claim` is true; raise ProcessDied or, after `timeout_s`, NotReady."""
        deadline = time.monotonic() + timeout_s
        while not claim():
            self.check()
            if time.monotonic() > deadline:
                raise NotReady(
                    f"{self.name}: {what} did not come within {timeout_s:.0f} s; "
                    f"its last output ({self.log_file}):\n{tail(self.log_file)}"
                )
            time.sleep(_POLL_S)

    def stop(self, grace_s: float = _GRACE_S) -> None:
        """End it by SIGTERM, and by SIGKILL to its group after `grace_s`; safe to repeat."""
        with suppress(ProcessLookupError, subprocess.TimeoutExpired):
            if self.is_running():
                self.popen.terminate()
                self.popen.wait(grace_s)
        self.kill()

    def kill(self) -> None:
        """End its whole group immediately."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()


def start_process(
    name: str,
    argv: Sequence[str | Path],
    log_file: Path,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    outlives_us: bool = False,
    stdin: int = subprocess.DEVNULL,
) -> ManagedProcess:
    """Start a program with its output in `log_file` (appended).

    With `outlives_us` it is detached from the terminal and survives us; else it ends with us.
    Raises OSError if the program cannot be started.
    """
    command = [str(part) for part in argv]
    if sys.platform == "linux" and not outlives_us:
        command = [sys.executable, "-I", "-S", "-c", _ENDS_WITH_PARENT, str(os.getpid()), *command]
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with log_file.open("ab") as log:
        popen = _spawner.submit(
            subprocess.Popen,
            command,
            stdin=stdin,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=None if environment is None else dict(environment),
            start_new_session=outlives_us,
            process_group=None if outlives_us else 0,
        ).result()
    try:
        started_at = psutil.Process(popen.pid).create_time()
    except psutil.NoSuchProcess:
        started_at = time.time()
    return ManagedProcess(name, log_file, popen, started_at)


class Processes:
    """Named processes that are stopped in the reverse order of their start."""

    def __init__(self, log_folder: Path, *, outlive_us: bool = False) -> None:
        self._log_folder = log_folder
        self._outlive_us = outlive_us
        self._running: dict[str, ManagedProcess] = {}
        self._started: list[ManagedProcess] = []

    def __getitem__(self, name: str) -> ManagedProcess:
        return self._running[name]

    def __contains__(self, name: str) -> bool:
        return name in self._running

    def started(self) -> tuple[ManagedProcess, ...]:
        """Return all processes ever started, running or not, in order of start."""
        return tuple(self._started)

    def all(self) -> tuple[ManagedProcess, ...]:
        """Return the processes started and not stopped, in order of start."""
        return tuple(self._running.values())

    def start(
        self,
        name: str,
        argv: Sequence[str | Path],
        environment: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> ManagedProcess:
        """Start a process under an unused name; raise ValueError if the name is in use."""
        if name in self._running and self._running[name].is_running():
            raise ValueError(f"{name} is already running")
        self._running.pop(name, None)
        process = start_process(
            name,
            argv,
            self._log_folder / f"{name}.log",
            environment=environment,
            outlives_us=self._outlive_us,
            stdin=stdin,
        )
        self._running[name] = process
        self._started.append(process)
        return process

    def stop(self, name: str, grace_s: float = _GRACE_S) -> None:
        """Stop one process; do nothing if the name is unknown."""
        if name in self._running:
            self._running[name].stop(grace_s)
            del self._running[name]

    def let_go(self) -> None:
        """Stop managing all processes, and leave them running."""
        for process in self._running.values():
            process.popen.returncode = 0  # otherwise Python warns that they still run
        self._running.clear()

    def stop_all(self, grace_s: float = _GRACE_S) -> None:
        """Stop all, last started first; if interrupted, kill the rest before raising."""
        try:
            for name in reversed(tuple(self._running)):
                self.stop(name, grace_s)
        finally:
            for process in self._running.values():
                process.kill()
            self._running.clear()


def tail(log_file: Path, lines: int = _TAIL_LINES) -> str:
    """Return the last lines of a log, or a note that there is none."""
    try:
        text = log_file.read_text(errors="replace")
    except OSError as fault:
        return f"(no log: {fault})"
    return "\n".join(text.splitlines()[-lines:]) or "(it printed nothing)"
