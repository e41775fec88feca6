"""One run's own folder of cgroups: all that it starts lies below, and goes with it.

It is named after the process that holds the run's namespaces, so that whoever finds one whose
holder has ended knows that nobody will remove it.
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
# Of a machine's own processes, and of the network's; containers lie below the node's other folder.
_OWN = "processes-"
NETWORK = "network"
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
        for machine in (NETWORK, *nodes):
            self._make_machine(machine)

    def join(self, machine: str = NETWORK) -> tuple[str, ...]:
        """Return what a command is started through so that it and its children are a machine's."""
        script = 'echo $$ > "$0" && exec "$@"'
        return ("/bin/sh", "-c", script, str(self._own_processes(machine)))

    def take(self, pid: int, machine: str = NETWORK) -> None:
        """Make a process that runs already one of a machine's."""
        self._own_processes(machine).write_text(str(pid))

    def clear(self, node: str) -> None:
        """Kill every process of a node and of its containers; its cgroups are then empty."""
        inner = (node, f"{_OWN}{node}")
        self._end(lambda: any(True for name in inner for _ in self._folders(name)), inner)
        self._make_machine(node)

    def processes(self) -> set[int]:
        """Return the ids of all processes of the run and of its containers."""
        return {pid for folder in self._folders() for pid in _members(folder)}

    def remove(self) -> None:
        """Kill every process of the run, wait for their end, and remove its folders.

        Safe to repeat. Raises NotReady when one outlives it.
        """
        lent = self._lent()
        self._end(self._is_there, ("",))
        for controller in lent:
            with suppress(OSError):  # someone else uses it by now
                (self.root / _PASSED_ON).write_text(f"-{controller}")

    def _end(self, is_left: Callable[[], bool], inner: tuple[str, ...]) -> None:
        """Kill what lives below some folders and remove them, until nothing is left."""
        deadline = time.monotonic() + _PATIENCE_S
        while is_left():
            folders = [each for name in inner for each in self._folders(name)]
            for pid in {pid for folder in folders for pid in _members(folder)}:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for folder in folders:
                with suppress(OSError):  # a process in it has not ended yet
                    folder.rmdir()
            if time.monotonic() > deadline:
                raise NotReady(f"{self.name}: processes {self.processes()} do not end")
            time.sleep(0.02)

    def _make_machine(self, machine: str) -> None:
        for hierarchy in hierarchies(self.root):
            for inner in (machine, f"{_OWN}{machine}"):
                folder = hierarchy / self.name / inner
                folder.mkdir()
                _pass_on_cpus(folder)

    def _lent(self) -> list[str]:
        """Return the controllers that version 2 did not pass on before the run."""
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
        """Yield the folders that there are below one, and that one; the innermost first."""
        for hierarchy in hierarchies(self.root):
            for parent, _, _ in os.walk(hierarchy / self.name / inner, topdown=False):
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
        has_ended = psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE
        return has_ended or _start_of(int(pid)) != int(started)
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
