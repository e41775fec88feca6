"""The file system of kind's nodes before Kubernetes, from Debian's packages.

What the Dockerfile of kind's base image installs, less what serves network storage alone: among
that is udev, which would set up this machine's devices anew from inside a privileged container.
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
    "runc",  # kind builds it from source, for which a C compiler would be needed here
)
# In the words of that Dockerfile: services that have no sense in a container.
_TIDY = """
cd "$1/usr/lib/systemd/system"
rm -f sysinit.target.wants/systemd-tmpfiles-setup.service multi-user.target.wants/* \
  local-fs.target.wants/* sockets.target.wants/*udev* sockets.target.wants/*initctl* \
  basic.target.wants/* "$1"/etc/systemd/system/*.wants/*
ln -sf /usr/lib/systemd/systemd "$1/sbin/init"
"""


def base_key() -> str:
    """Return what the cache knows the base by."""
    return hashlib.sha256(f"{_SUITE} {_PACKAGES} {LEFT_OUT} {_TIDY}".encode()).hexdigest()[:12]


def base_tar(folder: Path) -> Path:
    """Return the file system as a tar below `folder`; make it on first use. Raises BuildFailed."""
    path = folder / f"base-{base_key()}.tar"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    LiveLine().say("kind's node image: its base from Debian's packages, once: about a minute")
    partial = path.with_suffix(".partial.tar")
    debian_tar(partial, _SUITE, _PACKAGES, hook=_TIDY.strip())
    for older in folder.glob("base-*.tar"):
        if older != partial:
            older.unlink()
    return partial.rename(path)
