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


class CannotRunNodes(GreenSchedError):
    """This machine lacks something that real nodes need, which the message names."""


def missing(*needs: Mapping[str, str]) -> tuple[str, ...]:
    """Describe what is missing of Linux, root, cgroups and these programs; nothing if none is."""
    if sys.platform != "linux":
        return ("Linux",)
    gaps = [] if os.geteuid() == 0 else ["root"]
    if not Path("/sys/fs/cgroup").is_dir():
        gaps.append("cgroups at /sys/fs/cgroup")
    packages = {
        package for need in needs for name, package in need.items() if shutil.which(name) is None
    }
    if packages:
        gaps.append(f"the packages {' '.join(sorted(packages))} (`make e2e-setup` installs them)")
    return tuple(gaps)


def require_nodes() -> None:
    """Raise CannotRunNodes if something is missing."""
    gaps = missing(NODES)
    if gaps:
        raise CannotRunNodes(f"real nodes need {', and '.join(gaps)}")
