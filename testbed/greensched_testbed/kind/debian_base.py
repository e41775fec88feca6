"""The file system of kind's nodes before Kubernetes, from Debian's packages.

What the Dockerfile of kind's base image installs, less what serves network storage alone: among
that is udev, which would set up this machine's devices anew from inside a privileged container.
"""

import hashlib
import subprocess
from pathlib import Path

from greensched_testbed.errors import BuildFailed
from greensched_testbed.progress import LiveLine

_SUITE = "trixie"
_PACKAGES = (
    "systemd",
    *("conntrack", "iptables", "nftables", "iproute2", "ethtool", "util-linux", "mount", "kmod"),
    *("libseccomp2", "e2fsprogs", "bash", "ca-certificates", "curl", "jq", "procps"),
    "runc",  # kind builds it from source, for which a C compiler would be needed here
)
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
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
    return hashlib.sha256(f"{_SUITE} {_PACKAGES} {_LEFT_OUT} {_TIDY}".encode()).hexdigest()[:12]


def base_tar(folder: Path) -> Path:
    """Return the file system as a tar below `folder`; make it on first use. Raises BuildFailed."""
    path = folder / f"base-{base_key()}.tar"
    if path.exists():
        return path
    folder.mkdir(parents=True, exist_ok=True)
    LiveLine().say("kind's node image: its base from Debian's packages, once: about a minute")
    partial = path.with_suffix(".partial.tar")
    command = [
        *("mmdebstrap", "--quiet", "--variant=minbase"),
        *(f"--dpkgopt=path-exclude={each}" for each in _LEFT_OUT),
        f"--include={','.join(_PACKAGES)}",
        f"--customize-hook={_TIDY.strip()}",
        *(_SUITE, str(partial)),
    ]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as fault:
        raise BuildFailed(f"mmdebstrap: {fault}; `make e2e-setup` installs it") from fault
    if result.returncode != 0:
        raise BuildFailed(f"mmdebstrap ended with {result.returncode}:\n{result.stderr[-2000:]}")
    for older in folder.glob("base-*.tar"):
        if older != partial:
            older.unlink()
    return partial.rename(path)
