"""Checks what a machine needs for building images and running nodes."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from greensched_core.errors import GreenSchedError

# The package of Debian and Ubuntu that contains each program.
IMAGES: Mapping[str, str] = {name: name for name in ("buildah", "mmdebstrap", "runc")}
NODES: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "ip": "iproute2",
    "conntrack": "conntrack",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "busybox": "busybox-static",
}
ENGINE: Mapping[str, str] = {**NODES, "iptables": "iptables"}  # of Docker, for kind


# Numbers of linux/capability.h. Root of a container often lacks them.
_CAPABILITIES = {"CAP_SYS_ADMIN": 21, "CAP_NET_ADMIN": 12}
_CGROUPS = "/sys/fs/cgroup"


class CannotRunNodes(GreenSchedError):
    """This machine lacks something that real nodes need, which the message names."""


def missing(*needs: Mapping[str, str]) -> tuple[str, ...]:
    """Describe what is missing of Linux, rights, cgroups and these programs; nothing if none is."""
    if sys.platform != "linux":
        return ("Linux",)
    mounts = Path("/proc/self/mounts").read_text()
    gaps = missing_rights(
        os.geteuid(), effective_capabilities(), may_make_cgroups(mounts), is_crowded(Path(_CGROUPS))
    )
    packages = {
        package for need in needs for name, package in need.items() if shutil.which(name) is None
    }
    if packages:
        gaps.append(f"the packages {' '.join(sorted(packages))} (`make e2e-setup` installs them)")
    return tuple(gaps)


def missing_rights(
    user_id: int, capabilities: int, has_cgroups: bool, is_crowded: bool = False
) -> list[str]:
    """Describe the rights that are missing; `capabilities` has a bit for each."""
    if user_id != 0:
        return ["root"]
    gaps = [name for name, bit in _CAPABILITIES.items() if not capabilities >> bit & 1]
    if not has_cgroups:
        gaps.append(f"cgroups that can be written at {_CGROUPS}")
    elif is_crowded:
        gaps.append(f"a root of cgroups at {_CGROUPS} that is the machine's or has no processes")
    return gaps


def effective_capabilities() -> int:
    """Return this process's effective capabilities, a bit for each; Linux alone has them."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def may_make_cgroups(mounts: str) -> bool:
    """Return whether there are cgroups and none is mounted read-only; `mounts` as in /proc."""
    found = [
        options.split(",")
        for _, place, kind, options, *_ in map(str.split, mounts.splitlines())
        if kind in ("cgroup", "cgroup2") and place.startswith(_CGROUPS)
    ]
    return bool(found) and all("rw" in options for options in found)


def is_crowded(root: Path) -> bool:
    """Return whether a root of cgroups (version 2) has processes and so enables no controllers.

    The kernel exempts only the machine's own root, not that of a container (EBUSY).
    """
    if not (root / "cgroup.type").exists():  # as in the machine's own root, and in version 1
        return False
    there, passed_on, processes = (
        set((root / f"cgroup.{name}").read_text().split())
        for name in ("controllers", "subtree_control", "procs")
    )
    return bool(there - passed_on) and bool(processes)


def require_nodes() -> None:
    """Raise CannotRunNodes if something is missing."""
    gaps = missing(NODES)
    if gaps:
        raise CannotRunNodes(f"real nodes need {', and '.join(gaps)}")
