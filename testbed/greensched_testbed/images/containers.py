"""Runs an image by runc like a node: as its user, without root, writable files and network.

Unlike on a node, there is no seccomp profile, which containerd would set.
"""

import json
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from greensched_testbed.images.building import Image, ImageStore
from greensched_testbed.processes import ManagedProcess, start_process, tail

_NAMESPACES = ("pid", "ipc", "uts", "mount")
_CGROUP = "greensched-images"  # parent of all containers; removed with the last one
_MASKED = ["/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/sys/firmware"]


@dataclass(frozen=True, slots=True)
class ContainerRun:
    """How a container is run, as far as the image does not say."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 512 * 2**20
    files: Mapping[str, Path] = field(default_factory=dict)  # host path by mount point, read-only
    writable: tuple[str, ...] = ("/tmp",)  # each an empty tmpfs
    network: Path | None = None  # to join; None: a new one without interfaces


class EnteredContainer:
    """Context manager that runs one container."""

    def __init__(self, store: ImageStore, image: Image, run: ContainerRun, folder: Path) -> None:
        """`folder`: for its files and its log."""
        self._image = image
        self._run = run
        self._name = f"greensched-{uuid.uuid4().hex[:12]}"
        self._folder = folder / self._name
        self._state = folder / "runc"
        self._root = store.root_of(image)
        self._process: ManagedProcess | None = None

    def __enter__(self) -> Self:
        root = self._root.__enter__()
        try:
            self._folder.mkdir(parents=True)
            (self._folder / "config.json").write_text(json.dumps(self._specification(root)))
            self._process = start_process(
                self._name,
                ["runc", "--root", self._state, "run", "--bundle", self._folder, self._name],
                self.log_file,
            )
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def log_file(self) -> Path:
        """The file with its output."""
        return self._folder / "log"

    @property
    def log(self) -> str:
        """The end of its output."""
        return tail(self.log_file, 1_000)

    def status(self) -> int | None:
        """Return its exit status, None while it runs; -9 if it was killed, such as for memory."""
        assert self._process is not None, "it was entered"
        return self._process.popen.poll()

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program in the container, as the same user."""
        return self._runc("exec", self._name, *command)

    def terminate(self) -> None:
        """Send it SIGTERM, as a node does."""
        self._runc("kill", self._name, "TERM")

    def close(self) -> None:
        """End it and remove its files and cgroups; safe to repeat."""
        self._runc("delete", "--force", self._name)
        if self._process is not None:
            self._process.stop()
        self._root.__exit__(None, None, None)
        for parent in Path("/sys/fs/cgroup").glob(f"**/{_CGROUP}" if _has_v2() else f"*/{_CGROUP}"):
            if not any(each.is_dir() for each in parent.iterdir()):
                parent.rmdir()

    def _runc(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["runc", "--root", str(self._state), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def _specification(self, root: Path) -> dict[str, Any]:
        """Return the configuration that runc reads (OCI runtime specification 1.0)."""
        uid, gid = (int(part) for part in self._image.user.split(":"))
        variables = [f"{name}={value}" for name, value in self._run.environment.items()]
        joined = {} if self._run.network is None else {"path": str(self._run.network)}
        network = {"type": "network", **joined}
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": uid, "gid": gid},
                "args": [*self._image.entrypoint, *self._run.arguments],
                "env": [*self._image.environment, *variables],  # no USER; runc adds HOME=/
                "cwd": self._image.folder,
                "capabilities": {},
                "noNewPrivileges": True,
            },
            "root": {"path": str(root), "readonly": True},
            "hostname": "entry-test",
            "mounts": [*_mounts(self._run, uid, gid)],
            "linux": {
                "namespaces": [*({"type": kind} for kind in _NAMESPACES), network],
                "cgroupsPath": f"/{_CGROUP}/{self._name}",
                "resources": {"memory": {"limit": self._run.memory_bytes}},
                "maskedPaths": _MASKED,
                "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys"],
            },
        }


def _mounts(run: ContainerRun, uid: int, gid: int) -> Sequence[dict[str, Any]]:
    return [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
         "options": ["nosuid", "mode=755", "size=65536k"]},
        {"destination": "/sys", "type": "sysfs", "source": "sysfs",
         "options": ["nosuid", "noexec", "nodev", "ro"]},
        *({"destination": place, "type": "tmpfs", "source": "tmpfs",
           "options": ["nosuid", "nodev", f"uid={uid}", f"gid={gid}", "mode=770"]}
          for place in run.writable),
        *({"destination": place, "type": "bind", "source": str(source), "options": ["rbind", "ro"]}
          for place, source in run.files.items()),
    ]  # fmt: skip


def _has_v2() -> bool:
    return Path("/sys/fs/cgroup/cgroup.controllers").exists()
