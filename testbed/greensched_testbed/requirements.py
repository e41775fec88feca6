"""What a machine must have for images and nodes of its own, and what of it is missing."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from greensched_core.errors import GreenSchedError

# Program → the package of Debian and Ubuntu that holds it.
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
ENGINE: Mapping[str, str] = {**NODES, "iptables": "iptables"}  # Docker's, for kind


class CannotRunNodes(GreenSchedError):
    """This machine lacks something that real nodes need; the message says what."""


def missing(*needs: Mapping[str, str]) -> tuple[str, ...]:
    """Return in words what of Linux, root, cgroups and these programs is missing, if anything."""
    if sys.platform != "linux":
        return ("Linux",)
    lacks = [] if os.geteuid() == 0 else ["root"]
    if not Path("/sys/fs/cgroup").is_dir():
        lacks.append("cgroups at /sys/fs/cgroup")
    packages = {
        package for need in needs for name, package in need.items() if shutil.which(name) is None
    }
    if packages:
        lacks.append(f"the packages {' '.join(sorted(packages))} (`make e2e-setup` installs them)")
    return tuple(lacks)


def require_nodes() -> None:
    """Raise CannotRunNodes when something is missing."""
    lacks = missing(NODES)
    if lacks:
        raise CannotRunNodes(f"real nodes need {', and '.join(lacks)}")
