"""Runs programs of another processor on this machine, in a namespace that ends with them.

Linux keeps which interpreter runs which programs in binfmt_misc, and since 6.7 apart for each user
namespace: nothing of the machine is changed, and nothing stays when the build is killed.
"""

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from deploy.release.faults import ReleaseFault

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_QEMU = {"amd64": "qemu-x86_64", "arm64": "qemu-aarch64"}
# Of an ELF header: 64 bits, little endian, executable or shared, and the number of the machine.
_HEADER = r"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00{machine}\x00"
_MASK = r"\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff"
_NUMBER = {"amd64": r"\x3e", "arm64": r"\xb7"}
_MARK = "GREENSCHED_RELEASE_EMULATES"
# buildah then mounts its layers as in any user namespace.
_INSIDE = {_MARK: "1", "_CONTAINERS_USERNS_CONFIGURED": "done", "_CONTAINERS_ROOTLESS_UID": "0"}
_ENTER = """
read -r _
mount --make-rprivate /
mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
printf '%s' "$0" > /proc/sys/fs/binfmt_misc/register
exec "$@"
"""


def foreign(platforms: Sequence[str]) -> list[str]:
    """Return the processors of these platforms whose programs this machine does not run."""
    if os.environ.get(_MARK):
        return []
    ours = _MACHINES.get(platform.machine(), "")
    wanted = {each.rpartition("/")[2] for each in platforms} - {ours}
    return sorted(each for each in wanted if not _is_registered(each))


def run_emulated(processors: Sequence[str], command: Sequence[str]) -> int:
    """Run a command where programs of these processors run too, and return its exit status.

    Raises ReleaseFault that says what is missing.
    """
    if len(processors) != 1 or processors[0] not in _QEMU:
        raise ReleaseFault(f"this machine cannot emulate {', '.join(processors)}")
    (processor,) = processors
    # Debian 12 calls the one without shared libraries -static, 13 has no other.
    interpreter = shutil.which(f"{_QEMU[processor]}-static") or shutil.which(_QEMU[processor])
    if interpreter is None or os.geteuid() != 0:
        raise ReleaseFault(
            f"programs for {processor} do not run here: as root with qemu-user-static"
            f" (apt install qemu-user-static) they would; or leave it out: PLATFORMS=linux/"
            f"{_MACHINES.get(platform.machine(), 'amd64')}"
        )
    line = registration(processor, interpreter)
    entering = ["unshare", "--user", "--mount", "bash", "-euc", _ENTER, line, *command]
    environment = {**os.environ, **_INSIDE}
    with subprocess.Popen(entering, stdin=subprocess.PIPE, env=environment) as process:
        _wait_for_namespace(process)
        for kind in ("uid_map", "gid_map"):
            # All of ours: buildah keeps the owners that an image has.
            Path(f"/proc/{process.pid}/{kind}").write_text("0 0 4294967295\n")
        process.communicate(b"\n")
    return process.returncode


def registration(processor: str, interpreter: str) -> str:
    """Return the line that has the kernel run a processor's programs by an interpreter.

    F opens the interpreter at once, so that it serves in every chroot; C and O keep what a file's
    set-uid bit and its handle mean.
    """
    header = _HEADER.format(machine=_NUMBER[processor])
    return f":qemu-{processor}:M::{header}:{_MASK}:{interpreter}:OCF"


def _wait_for_namespace(process: subprocess.Popen[bytes]) -> None:
    ours = os.readlink("/proc/self/ns/user")
    while os.readlink(f"/proc/{process.pid}/ns/user") == ours:
        if process.poll() is not None:
            raise ReleaseFault("the kernel gives no user namespace: enable them, or use PLATFORMS")


def _is_registered(processor: str) -> bool:
    folder = Path("/proc/sys/fs/binfmt_misc")
    if not folder.is_dir():
        return False
    names = [f"qemu-{name}" for name, ours in _MACHINES.items() if ours == processor]
    return any((folder / name).exists() for name in names)
