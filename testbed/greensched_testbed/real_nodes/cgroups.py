"""One run's folder of cgroups: all its processes are below it, and end with it.

It is named after the process that holds the run's namespaces. If that has ended, the folder is
abandoned and may be removed.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from greensched_testbed.errors import NotReady

_ROOT = Path("/sys/fs/cgroup")
_PREFIX = "greensched-nodes-"
# Prefix for a machine's own processes and the network's; containers are in the node's other folder.
_OWN = "processes-"
NETWORK = "network"
_PASSED_ON = "cgroup.subtree_control"  # only in version 2
_LENT = "trusted.greensched.lent"  # an attribute of the run's folder, removed with it
_PATIENCE_S = 20.0


@dataclass(frozen=True)
class RunCgroups:
    """The cgroups of one run, in every hierarchy (version 1) or in the only one (version 2)."""

    name: str
    root: Path = _ROOT

    def node(self, node: str) -> str:
        """Return the path of a node's root cgroup, for kubelet."""
        return f"/{self.name}/{node}"

    def make(self, nodes: tuple[str, ...]) -> None:
        """Create the folders of the run, of its own processes and of its nodes."""
        for hierarchy in hierarchies(self.root):
            own = hierarchy / self.name
            own.mkdir()
            if hierarchy == self.root:
                os.setxattr(own, _LENT, " ".join(_pass_on_controllers(hierarchy)).encode())
                _pass_on_controllers(own)
            _pass_on_cpus(own)
        for machine in (NETWORK, *nodes):
            self._make_machine(machine)

    def join(self, machine: str = NETWORK) -> tuple[str, ...]:
        """Return the prefix that starts a command and its children in a machine's cgroup."""
        script = 'echo $$ > "$0" && exec "$@"'
        return ("/bin/sh", "-c", script, str(self._own_processes(machine)))

    def take(self, pid: int, machine: str = NETWORK) -> None:
        """Move a running process into a machine's cgroup."""
        self._own_processes(machine).write_text(str(pid))

    def clear(self, node: str) -> None:
        """Kill all processes of a node and of its containers, which empties its cgroups."""
        inner = (node, f"{_OWN}{node}")
        self._end(lambda: any(True for name in inner for _ in self._folders(name)), inner)
        self._make_machine(node)

    def processes(self) -> set[int]:
        """Return the ids of all processes of the run and of its containers."""
        return {pid for folder in self._folders() for pid in _members(folder)}

    def remove(self) -> None:
        """Kill all processes of the run, wait for their end, and remove its folders.

        Safe to repeat. Raises NotReady if a process does not end.
        """
        lent = self._lent()
        self._end(self._is_there, ("",))
        for controller in lent:
            with suppress(OSError):  # now used by others
                (self.root / _PASSED_ON).write_text(f"-{controller}")

    def _end(self, is_left: Callable[[], bool], inner: tuple[str, ...]) -> None:
        """Kill the processes below some folders, and remove these, until `is_left` is false."""
        deadline = time.monotonic() + _PATIENCE_S
        while is_left():
            folders = [each for name in inner for each in self._folders(name)]
            for pid in {pid for folder in folders for pid in _members(folder)}:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for folder in folders:
                with suppress(OSError):  # a process in it has not yet ended
                    folder.rmdir()
            if time.monotonic() > deadline:
                raise NotReady(
                    f"cgroup {self.name}: its processes {self.processes()} did not end "
                    f"within {_PATIENCE_S:.0f} s of SIGKILL"
                )
            time.sleep(0.02)

    def _make_machine(self, machine: str) -> None:
        for hierarchy in hierarchies(self.root):
            for inner in (machine, f"{_OWN}{machine}"):
                folder = hierarchy / self.name / inner
                folder.mkdir()
                _pass_on_cpus(folder)

    def _lent(self) -> list[str]:
        """Return the controllers that the root cgroup (version 2) did not enable before the run."""
        try:
            return os.getxattr(self.root / self.name, _LENT).decode().split()
        except OSError:
            return []

    def _is_there(self) -> bool:
        return any((each / self.name).exists() for each in hierarchies(self.root))

    def _own_processes(self, machine: str) -> Path:
        places = {each.name: each for each in hierarchies(self.root)}
        hierarchy = places.get("pids", next(iter(places.values())))
        return hierarchy / self.name / f"{_OWN}{machine}" / "cgroup.procs"

    def _folders(self, inner: str = "") -> Iterator[Path]:
        """Yield the existing folders below one, and that one, innermost first."""
        for hierarchy in hierarchies(self.root):
            for parent, _, _ in os.walk(hierarchy / self.name / inner, topdown=False):
                yield Path(parent)


def cgroups_of(holder: psutil.Process) -> RunCgroups:
    """Return the cgroups of the run whose namespaces a process holds."""
    return RunCgroups(f"{_PREFIX}{holder.pid}-{_start_of(holder.pid)}")


def all_runs(root: Path = _ROOT) -> tuple[RunCgroups, ...]:
    """Return the runs with cgroups on this machine."""
    names = {each.name for place in hierarchies(root) for each in place.glob(f"{_PREFIX}*-*")}
    return tuple(RunCgroups(name, root) for name in sorted(names))


def is_our_cgroup(name: str) -> bool:
    """Return whether a name is that of a run."""
    return name.startswith(_PREFIX)


def is_abandoned(run: str) -> bool:
    """Return whether the process after which a run is named has ended."""
    pid, started = run.removeprefix(_PREFIX).split("-")
    try:
        has_ended = psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
        return has_ended or _start_of(int(pid)) != int(started)
    except psutil.NoSuchProcess:
        return True


def hierarchies(root: Path = _ROOT) -> tuple[Path, ...]:
    """Return the folders in which cgroups are created."""
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
    """Enable all of a folder's controllers for its children; return those newly enabled."""
    passed_on = set((folder / _PASSED_ON).read_text().split())
    lacking = set((folder / "cgroup.controllers").read_text().split()) - passed_on
    for each in sorted(lacking):
        (folder / _PASSED_ON).write_text(f"+{each}")
    return sorted(lacking)


def _pass_on_cpus(folder: Path) -> None:
    """Copy the parent's cores to a folder; version 1 leaves them empty."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (folder / name).exists() and not (folder / _PASSED_ON).exists():
            (folder / name).write_text((folder.parent / name).read_text())
