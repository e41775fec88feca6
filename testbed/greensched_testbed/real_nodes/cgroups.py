"""One run's own folder of cgroups: all that it starts lies below, and goes with it.

It is named after the process that holds the run's namespaces, so that whoever finds one whose
holder has ended knows that nobody will remove it.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from greensched_testbed.errors import NotReady

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "greensched-nodes-"
_PROCESSES = "processes"  # of the nodes themselves; containers lie below their node's folder
_PASSED_ON = "cgroup.subtree_control"  # version 2's alone
_LENT = "trusted.greensched.lent"  # an attribute of the run's folder, which goes with it
_PATIENCE_S = 20.0


@dataclass(frozen=True)
class RunCgroups:
    """The cgroups of one run, in every hierarchy (version 1) or in the one there is (version 2)."""

    name: str
    root: Path = _ROOT

    def node(self, node: str) -> str:
        """Return what kubelet calls the node's root."""
        return f"/{self.name}/{node}"

    def make(self, nodes: tuple[str, ...]) -> None:
        """Make the folders of the run, of its own processes and of its nodes."""
        for hierarchy in hierarchies(self.root):
            own = hierarchy / self.name
            own.mkdir()
            if hierarchy == self.root:
                os.setxattr(own, _LENT, " ".join(_pass_on_controllers(hierarchy)).encode())
                _pass_on_controllers(own)
            _pass_on_cpus(own)
            for inner in (_PROCESSES, *nodes):
                (own / inner).mkdir()
                _pass_on_cpus(own / inner)

    def join(self) -> tuple[str, ...]:
        """Return what a command is started through so that it and its children are the run's."""
        script = 'echo $$ > "$0" && exec "$@"'
        return ("/bin/sh", "-c", script, str(self._own_processes()))

    def take(self, pid: int) -> None:
        """Make a process that runs already one of the run's."""
        self._own_processes().write_text(str(pid))

    def processes(self) -> set[int]:
        """Return the ids of all processes of the run and of its containers."""
        return {pid for folder in self._folders() for pid in _members(folder)}

    def remove(self) -> None:
        """Kill every process of the run, wait for their end, and remove its folders.

        Safe to repeat. Raises NotReady when one outlives it.
        """
        deadline = time.monotonic() + _PATIENCE_S
        lent = self._lent()
        while not self._is_gone():
            for pid in self.processes():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for folder in self._folders():
                with suppress(OSError):  # a process in it has not ended yet
                    folder.rmdir()
            if time.monotonic() > deadline:
                raise NotReady(f"{self.name}: processes {self.processes()} do not end")
            time.sleep(0.02)
        for controller in lent:
            with suppress(OSError):  # someone else uses it by now
                (self.root / _PASSED_ON).write_text(f"-{controller}")

    def _lent(self) -> list[str]:
        """Return the controllers that version 2 did not pass on before the run."""
        try:
            return os.getxattr(self.root / self.name, _LENT).decode().split()
        except OSError:
            return []

    def _is_gone(self) -> bool:
        return not any((each / self.name).exists() for each in hierarchies(self.root))

    def _own_processes(self) -> Path:
        places = {each.name: each for each in hierarchies(self.root)}
        hierarchy = places.get("pids", next(iter(places.values())))
        return hierarchy / self.name / _PROCESSES / "cgroup.procs"

    def _folders(self) -> Iterator[Path]:
        """Yield the folders that there are, the innermost first."""
        for hierarchy in hierarchies(self.root):
            for parent, _, _ in os.walk(hierarchy / self.name, topdown=False):
                yield Path(parent)


def cgroups_of(holder: psutil.Process) -> RunCgroups:
    """Return the cgroups of the run whose namespaces a process holds."""
    return RunCgroups(f"{_PREFIX}{holder.pid}-{_start_of(holder.pid)}")


def all_runs(root: Path = _ROOT) -> tuple[RunCgroups, ...]:
    """Return the runs that have cgroups on this machine."""
    names = {each.name for place in hierarchies(root) for each in place.glob(f"{_PREFIX}*-*")}
    return tuple(RunCgroups(name, root) for name in sorted(names))


def is_ours(name: str) -> bool:
    """Say whether a name is that of a run."""
    return name.startswith(_PREFIX)


def is_abandoned(run: str) -> bool:
    """Say whether the process that a run is named after has ended."""
    pid, started = run.removeprefix(_PREFIX).split("-")
    try:
        return _start_of(int(pid)) != int(started)
    except psutil.NoSuchProcess:
        return True


def hierarchies(root: Path = _ROOT) -> tuple[Path, ...]:
    """Return the folders below which cgroups are made."""
    if (root / "cgroup.controllers").exists():
        return (root,)
    found = [each for each in root.iterdir() if (each / "cgroup.procs").exists()]
    return tuple(sorted(each for each in found if not each.is_symlink()))


def _start_of(pid: int) -> int:
    """Return when a process started, in hundredths of seconds since the epoch."""
    return round(psutil.Process(pid).create_time() * 100)


def _members(folder: Path) -> Iterator[int]:
    with suppress(OSError):
        yield from map(int, (folder / "cgroup.procs").read_text().split())


def _pass_on_controllers(folder: Path) -> list[str]:
    """Let folders below have every controller that this one has; return those they had not."""
    passed_on = set((folder / _PASSED_ON).read_text().split())
    lacking = set((folder / "cgroup.controllers").read_text().split()) - passed_on
    for each in sorted(lacking):
        (folder / _PASSED_ON).write_text(f"+{each}")
    return sorted(lacking)


def _pass_on_cpus(folder: Path) -> None:
    """Give a folder the cores of the one above, which version 1 leaves empty."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (folder / name).exists() and not (folder / _PASSED_ON).exists():
            (folder / name).write_text((folder.parent / name).read_text())
