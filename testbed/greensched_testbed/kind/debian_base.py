"""Builds the file system of kind's nodes without Kubernetes, from Debian's packages.

It has the packages of kind's base image, except those only for network storage. One of these is
udev, which would reconfigure this machine's devices from inside a privileged container.
"""

import hashlib
from pathlib import Path

from greensched_testbed.images.debian import LEFT_OUT, debian_tar
from greensched_testbed.progress import LiveLine

_SUITE = "trixie"
_PACKAGES = (
    "systemd",
    *("conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod"),
    *("libseccomp2", "e2fsprogs", "bash", "ca-certificates", "curl", "jq", "procps"),
    "runc",  # kind builds it from source, which would need a C compiler
)
# As in that Dockerfile: remove services that make no sense in a container.
_TIDY = """
cd "$1/usr/lib/systemd/system"
rm -f sysinit.target.wants/systemd-tmpfiles-setup.service multi-user.target.wants/* \
  local-fs.target.wants/* sockets.target.wants/*udev* sockets.target.wants/*initctl* \
  basic.target.wants/* "$1"/etc/systemd/system/*.wants/*
ln -sf /usr/lib/systemd/systemd "$1/sbin/init"
"""


def base_key() -> str:
    """Return the cache key of the base."""
    return hashlib.sha256(f"{_SUITE} {_PACKAGES} {LEFT_OUT} {_TIDY}".encode()).hexdigest()[:12]


def base_tar(folder: Path) -> Path:
    """Return the file system as a tar below `folder`; build it on first use. Raises BuildFailed."""
    path = folder / f"base-{base_key()}.tar"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    LiveLine().say("kind's node image: building its base from Debian's packages, about a minute")
    partial = path.with_suffix(".partial.tar")
    debian_tar(partial, _SUITE, _PACKAGES, hook=_TIDY.strip())
    for older in folder.glob("base-*.tar"):
        if older != partial:
            older.unlink()
    return partial.rename(path)
