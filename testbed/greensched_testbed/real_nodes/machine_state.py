"""Reads the state that real nodes could leave changed on a machine, to compare before and after.

A process counts if its network namespace is not ours, as with all processes of a cluster, and its
starter has ended. State that changes by itself or that others use now is excluded: others may start
and stop containers meanwhile.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import platformdirs

from greensched_testbed.commands import run_command
from greensched_testbed.real_nodes.cgroups import hierarchies, is_abandoned, is_our_cgroup
from greensched_testbed.real_nodes.lan import plugged_in

_FOLDERS = (
    "/etc/cni",
    "/etc/cni/net.d",
    "/etc/containerd",
    "/etc/kubernetes",
    "/opt",
    "/opt/cni",
    "/run",
    "/run/netns",
    "/run/containerd",
    "/usr/libexec/kubernetes",
    "/var/lib",
    "/var/lib/cni",
    "/var/log",
    "/var/log/containers",
)
_LIBMOUNT = "/run/mount"  # which libmount makes at a machine's first mount, whoever mounts
_LASTING = ("sysctls", "network", "folders")
# These change by themselves, or with other interfaces and processes.
_VOLATILE = re.compile(
    r"^(fs/|kernel/(random/|ns_last_pid|pty/nr|sched_domain/|perf_event_max_sample_rate)"
    r"|net/ipv[46]/(conf|neigh)/(?!all/|default/)|net/netfilter/nf_conntrack_count"
    r"|net/netfilter/nf_log/|net/ipv4/route/flush|net/ipv6/route/flush|vm/(compact_memory|stat_refresh))"
)


class MachineState(msgspec.Struct, frozen=True):
    """A line for each item, by kind."""

    processes: frozenset[str]
    cgroups: frozenset[str]
    mounts: frozenset[str]
    sysctls: frozenset[str]
    network: frozenset[str]
    folders: frozenset[str]

    def differences(self, later: "MachineState") -> tuple[str, ...]:
        """Describe what was added until `later`, and what of the machine's own was removed.

        Mounts and processes of others may end meanwhile.
        """
        found = []
        for kind in self.__struct_fields__:
            before, after = getattr(self, kind), getattr(later, kind)
            found += [f"{kind}, new: {each}" for each in sorted(after - before)]
            if kind in _LASTING:
                found += [f"{kind}, gone: {each}" for each in sorted(before - after)]
        return tuple(found)


def machine_state() -> MachineState:
    """Return the state of this machine now; needs root."""
    return MachineState(
        processes=frozenset(_forsaken_processes()),
        cgroups=frozenset(_cgroups()),
        mounts=frozenset(_mounts()),
        sysctls=frozenset(_sysctls(Path("/proc/sys"))),
        network=frozenset(_network()),
        folders=frozenset(_entries()),
    )


def _forsaken_processes() -> Iterator[str]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):  # the process has ended meanwhile
            if _is_foreign(int(folder.name)) and not _has_living_starter(int(folder.name)):
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")[:80]
                yield f"{folder.name} {command.decode(errors='replace').strip()}"


def _is_foreign(pid: int) -> bool:
    return os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net")


def _has_living_starter(pid: int) -> bool:
    """Return whether a process has an ancestor outside other than init, or its run is alive."""
    outermost = pid
    while pid > 1 and _is_foreign(pid):
        outermost, pid = pid, _parent(pid)
    return pid > 1 or _is_of_a_living_run(outermost)


def _is_of_a_living_run(pid: int) -> bool:
    names = Path(f"/proc/{pid}/cgroup").read_text().replace("\n", "/").split("/")
    return any(map(_is_living_run, names))


def _is_living_run(name: str) -> bool:
    return is_our_cgroup(name) and not is_abandoned(name)


def _parent(pid: int) -> int:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    return int(after_name.split()[1])


def _cgroups() -> Iterator[str]:
    for hierarchy in hierarchies():
        passed_on = hierarchy / "cgroup.subtree_control"
        if passed_on.exists():
            yield f"{passed_on}: {passed_on.read_text().strip()}"
        for each in hierarchy.iterdir():
            if each.is_dir() and not _is_living_run(each.name) and not _is_used(each):
                yield str(each)


def _is_used(cgroup: Path) -> bool:
    """Return whether a cgroup contains a process that is ours or whose starter lives."""
    for folder, _, _ in os.walk(cgroup):
        with suppress(OSError, ValueError):
            for pid in map(int, (Path(folder) / "cgroup.procs").read_text().split()):
                if not _is_foreign(pid) or _has_living_starter(pid):
                    return True
    return False


def _mounts() -> Iterator[str]:
    store = f"{platformdirs.user_cache_path('greensched', appauthor=False)}/"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place, kind = line.split()[4], line.split(" - ")[1].split()[0]
        if not place.startswith(store):  # mounts of images in use
            yield f"{place} ({kind})"


def _sysctls(root: Path) -> Iterator[str]:
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder) / name
            label = str(path.relative_to(root))
            if not _VOLATILE.match(label) and path.stat().st_mode & 0o200:
                with suppress(OSError):  # some are write-only
                    yield f"{label} = {path.read_text(errors='replace').strip()}"


def _network() -> Iterator[str]:
    """Yield links, addresses, routes and filters, except for interfaces of active runs."""
    used = [name for run, name in plugged_in().items() if _is_living_run(run)]
    theirs = re.compile("|".join(rf"\b{name}\b" for name in used) or "(?!)")
    yield from (line for line in _network_lines() if not theirs.search(line))


def _network_lines() -> Iterator[str]:
    yield from run_command("ip", "-brief", "-oneline", "link", "show").splitlines()
    yield from run_command("ip", "-oneline", "address", "show").splitlines()
    yield from run_command("ip", "route", "show", "table", "all").splitlines()
    for program in ("nft list ruleset", "iptables-save"):
        if shutil.which(program.split()[0]):
            lines = run_command(*program.split()).splitlines()
            yield from (line for line in lines if not line.startswith("#"))


def _entries() -> Iterator[str]:
    for folder in map(Path, _FOLDERS):
        with suppress(FileNotFoundError, NotADirectoryError):
            yield from (str(each) for each in folder.iterdir() if str(each) != _LIBMOUNT)
