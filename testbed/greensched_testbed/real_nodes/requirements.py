"""What a machine must have for real nodes, and what of it is missing."""

import os
import shutil
import sys
from pathlib import Path

from greensched_core.errors import GreenSchedError

# Program → Debian's and Ubuntu's package.
_PACKAGES = {
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


class CannotRunNodes(GreenSchedError):
    """This machine lacks something that real nodes need; the message says what."""


def missing() -> tuple[str, ...]:
    """Return in words what real nodes lack here; nothing when they can run."""
    if sys.platform != "linux":
        return ("Linux",)
    lacks = [] if os.geteuid() == 0 else ["root"]
    if not Path("/sys/fs/cgroup").is_dir():
        lacks.append("cgroups at /sys/fs/cgroup")
    absent = {package for name, package in _PACKAGES.items() if shutil.which(name) is None}
    if absent:
        lacks.append(f"the packages {' '.join(sorted(absent))} (`make e2e-setup` installs them)")
    return tuple(lacks)


def require() -> None:
    """Raise CannotRunNodes when something is missing."""
    lacks = missing()
    if lacks:
        raise CannotRunNodes(f"real nodes need {', and '.join(lacks)}")
