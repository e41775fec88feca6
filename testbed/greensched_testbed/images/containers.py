"""Runs an image by runc as a node would: its user, no root, nothing writable, no network.

Not as a node does it: no seccomp profile, which containerd brings.
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
_CGROUP = "greensched-images"  # the parent of all; removed when the last has gone
_MASKED = ["/proc/kcore", "/proc/keys", "/proc/sysrq-trigger", "/sys/firmware"]


@dataclass(frozen=True, slots=True)
class ContainerRun:
    """How a container is run; the image says the rest."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 512 * 2**20
    files: Mapping[str, Path] = field(
        default_factory=dict
    )  # where → what is shown there, read-only
    writable: tuple[str, ...] = ("/tmp",)  # each an empty tmpfs
    network: Path | None = None  # to join; else one of its own with nothing in it


class EnteredContainer:
    """One container, while it is entered."""

    def __init__(self, store: ImageStore, image: Image, run: ContainerRun, folder: Path) -> None:
        """`folder` takes its files and its log."""
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
        """Where what it prints is kept."""
        return self._folder / "log"

    @property
    def log(self) -> str:
        """What it has printed."""
        return tail(self.log_file, 1_000)

    def status(self) -> int | None:
        """Return its exit status, None while it runs; -9 where it was killed, for memory say."""
        assert self._process is not None, "it was entered"
        return self._process.popen.poll()

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program beside it, in the same namespaces, as the same user."""
        return self._runc("exec", self._name, *command)

    def terminate(self) -> None:
        """Ask it to end, as a node does."""
        self._runc("kill", self._name, "TERM")

    def close(self) -> None:
        """End it and remove all of it; safe to repeat."""
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
        given = [f"{name}={value}" for name, value in self._run.environment.items()]
        joined = {} if self._run.network is None else {"path": str(self._run.network)}
        network = {"type": "network", **joined}
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": uid, "gid": gid},
                "args": [*self._image.entrypoint, *self._run.arguments],
                "env": [*self._image.environment, *given],  # neither USER nor HOME
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
