"""Runs Docker's engine in its own network and mount namespaces, and removes all traces of it."""

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from greensched_testbed.commands import run_command
from greensched_testbed.kind import runc_without_resource
from greensched_testbed.kind.docker_packages import docker_folders
from greensched_testbed.processes import Processes
from greensched_testbed.real_nodes.cgroups import cgroups_of
from greensched_testbed.real_nodes.cluster import remove_run, sweep
from greensched_testbed.real_nodes.namespaces import hold_namespaces
from greensched_testbed.requirements import effective_capabilities
from greensched_testbed.scratch import new_scratch_folder

_CONTAINERS = "containers"
_RUNTIME = "without-resource"
_START_TIMEOUT_S = 60.0
_CAP_SYS_RESOURCE = 24  # linux/capability.h
# The engine, its containerd and its bind mounts write to copies of these, removed with the engine.
_LOADING_S = 600.0
_SHADOWED = ("/etc", "/opt", "/usr/lib")


@dataclass(frozen=True)
class Engine:
    """A running engine."""

    run_name: str  # name of its cgroups, by which `sweep` finds it
    folder: Path
    prefix: tuple[str, ...]  # runs a command in the engine's namespaces; it ends with the engine
    environment: Mapping[str, str]  # for Docker's client and its callers

    def run(self, command: Sequence[str | Path], folder: Path, more: Mapping[str, str]) -> int:
        """Run a command that can reach the engine's published ports; return its status."""
        inside = [*self.prefix, "env", "--chdir", str(folder), *command]
        environment = {**os.environ, **self.environment, **more}
        return subprocess.run(inside, env=environment, check=False).returncode

    def load(self, archive: Path) -> None:
        """Load an archive of `docker save`; raise CommandFailed."""
        command = ("docker", "load", "--quiet", "--input", archive)
        run_command(*command, environment={**os.environ, **self.environment}, timeout_s=_LOADING_S)


@contextmanager
def engine() -> Iterator[Engine]:
    """Context manager that runs an engine; it then removes its processes, mounts and files.

    After a SIGKILL of us, the next start or `sweep` removes what the kernel does not. Raises
    BuildFailed, NotReady or ProcessDied if it does not start.
    """
    search_path = os.pathsep.join([*map(str, docker_folders()), os.environ["PATH"]])
    sweep()
    folder = new_scratch_folder()
    processes = Processes(folder / "logs")
    run, namespaces = "", None
    try:
        namespaces = hold_namespaces(processes, "network")
        cgroups = cgroups_of(psutil.Process(namespaces.holder.pid))
        run = cgroups.name
        cgroups.make((_CONTAINERS,))
        cgroups.take(namespaces.holder.pid)
        namespaces.run(_preparation(folder))
        socket = folder / "docker.sock"
        environment = {"PATH": search_path, "DOCKER_HOST": f"unix://{socket}"}
        prefix = (*cgroups.join(), *namespaces.prefix())
        options = [f"--host=unix://{socket}", f"--cgroup-parent=/{run}/{_CONTAINERS}"]
        command = [*prefix, "dockerd", *options, *_options(folder)]
        dockerd = processes.start("dockerd", command, {**os.environ, **environment})
        dockerd.wait_until(socket.exists, "its socket", _START_TIMEOUT_S)
        yield Engine(run, folder, prefix, environment)
    finally:
        try:
            if run:
                remove_run(run)
        finally:
            processes.stop_all()
            if namespaces is not None:
                namespaces.close()
            shutil.rmtree(folder)


def _options(folder: Path) -> Iterator[str]:
    yield f"--data-root={folder / 'data'}"
    yield "--exec-root=/run/docker"
    yield "--pidfile=/run/docker.pid"
    yield "--storage-driver=overlay2"
    yield "--log-level=warn"
    if not effective_capabilities() >> _CAP_SYS_RESOURCE & 1:  # privileged containers are given it
        runtime = folder / "runc"
        script = Path(runc_without_resource.__file__)
        runtime.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{script}" "$@"\n')
        runtime.chmod(runtime.stat().st_mode | stat.S_IXUSR)
        yield f"--add-runtime={_RUNTIME}={runtime}"
        yield f"--default-runtime={_RUNTIME}"


def _preparation(folder: Path) -> str:
    """Return the script that mounts the engine's own /run and other folders."""
    lines = ["ip link set lo up", "mount -t tmpfs -o mode=755 run /run", "mkdir /run/lock"]
    for place in _SHADOWED:
        written, work = (folder / f"{kind}{place.replace('/', '-')}" for kind in ("to", "work"))
        written.mkdir()
        work.mkdir()
        options = f"lowerdir={place},upperdir={written},workdir={work}"
        lines.append(f"mount -t overlay -o {options} overlay {place}")
    lines.append("mkdir -p /lib/modules")  # kind binds this into its nodes
    return "\n".join(lines)
