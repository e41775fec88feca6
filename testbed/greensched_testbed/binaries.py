"""Builds the control plane's programs once, from source, and keeps them in the user's cache.

They come out of two Go modules that lie beside this file: `go/` (etcd, Kubernetes, kwok, Helm) and
`go/prometheus/`. The cache's key is a hash of go.mod, go.sum and the flags.
"""

import fcntl
import hashlib
import math
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from greensched_testbed.errors import BuildFailed
from greensched_testbed.go_toolchain import find_go
from greensched_testbed.processes import ManagedProcess, start_process, tail
from greensched_testbed.progress import LiveLine

KUBERNETES_VERSION = "v1.36.3"
_MODULES = Path(__file__).parent / "go"
_VERSION_PACKAGE = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Recipe:
    """One Go module and the programs that its tools become."""

    title: str
    module: Path
    programs: tuple[str, ...]
    cpu_minutes: float  # measured cold, to tell how long it takes
    flags: tuple[str, ...]
    renamed: Mapping[str, str] = field(default_factory=dict)  # Go's name → ours

    def key(self) -> str:
        """Return what the cache knows the result by."""
        digest = hashlib.sha256()
        for part in (self.module / "go.mod", self.module / "go.sum"):
            digest.update(part.read_bytes())
        digest.update("\0".join((*self.flags, *self.programs)).encode())
        return digest.hexdigest()[:16]


CONTROL_PLANE = Recipe(
    title="Kubernetes control plane",
    module=_MODULES,
    programs=(
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubectl",
        "kwok",
        "helm",
    ),
    cpu_minutes=16.0,
    flags=(
        "-ldflags",
        # Without a version kubectl and Helm cannot parse what the server calls itself.
        f"-s -w -X {_VERSION_PACKAGE}.gitVersion={KUBERNETES_VERSION}"
        f" -X {_VERSION_PACKAGE}.gitMajor=1 -X {_VERSION_PACKAGE}.gitMinor=36",
    ),
    renamed={"server": "etcd"},  # the module go.etcd.io/etcd/server/v3 is the program
)
PROMETHEUS = Recipe(
    title="Prometheus server",
    module=_MODULES / "prometheus",
    programs=("prometheus",),
    cpu_minutes=4.0,
    # Without service discovery for clouds: a third fewer packages.
    flags=("-tags", "remove_all_sd", "-ldflags", "-s -w"),
)


def control_plane_programs() -> Path:
    """Return the folder of the control plane's programs; build them first if need be."""
    return built(CONTROL_PLANE)


def prometheus_program() -> Path:
    """Return the path of a Prometheus server; build it first if need be."""
    return built(PROMETHEUS) / "prometheus"


def built(recipe: Recipe, cache: Path | None = None) -> Path:
    """Return the folder with the recipe's programs; build them on first use, showing progress.

    Two processes at once build only once. Raises BuildFailed with the log's path.
    """
    cache = cache or platformdirs.user_cache_path("greensched", appauthor=False) / "bin"
    result = cache / recipe.key()
    if result.is_dir():
        return result
    cache.mkdir(parents=True, exist_ok=True)
    with _sole_builder(cache / f"{recipe.key()}.lock", recipe):
        if not result.is_dir():
            partial = cache / f"{recipe.key()}.partial"
            shutil.rmtree(partial, ignore_errors=True)  # what a killed build left
            partial.mkdir()
            _build(recipe, find_go(cache), partial, cache / f"{recipe.key()}.log")
            partial.rename(result)
    return result


@contextmanager
def _sole_builder(lock_file: Path, recipe: Recipe) -> Iterator[None]:
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with LiveLine() as line:
                line.say(f"{recipe.title}: another process is building it; waiting for that")
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield  # closing the file frees the lock


def _build(recipe: Recipe, go: Path, into: Path, log_file: Path) -> None:
    log_file.unlink(missing_ok=True)
    command: list[str | Path] = [go, "build", "-v", *recipe.flags, "-o", f"{into}/", "tool"]
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",  # needs no C compiler
        "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    began = time.monotonic()
    process = start_process(
        "go build", command, log_file, environment=environment, folder=recipe.module
    )
    try:
        with LiveLine() as line:
            line.say(_announcement(recipe))
            while process.is_running():
                line.update(_state(recipe, log_file, time.monotonic() - began))
                _wait_briefly(process)
    finally:
        process.kill()
    _finish(recipe, process, into, log_file)
    LiveLine().say(f"{recipe.title}: built in {time.monotonic() - began:.0f} s")


def _finish(recipe: Recipe, process: ManagedProcess, into: Path, log_file: Path) -> None:
    if process.popen.returncode != 0:
        raise BuildFailed(
            f"building the {recipe.title} failed (go ended with {process.popen.returncode}); "
            f"the whole log is {log_file}, its end:\n{tail(log_file)}"
        )
    for theirs, ours in recipe.renamed.items():
        (into / theirs).rename(into / ours)
    missing = [name for name in recipe.programs if not (into / name).exists()]
    if missing:
        raise BuildFailed(f"go built no {', '.join(missing)}; the log is {log_file}")


def _announcement(recipe: Recipe) -> str:
    minutes = max(1, math.ceil(recipe.cpu_minutes / (os.cpu_count() or 1)))
    return (
        f"{recipe.title}: building {', '.join(recipe.programs)} from source; about {minutes} "
        f"minutes on this machine, once (less when Go has compiled them before)"
    )


def _state(recipe: Recipe, log_file: Path, elapsed_s: float) -> str:
    lines = log_file.read_text(errors="replace").splitlines()
    fetched = sum(line.startswith("go: downloading") for line in lines)
    compiled = len(lines) - fetched
    latest = lines[-1].removeprefix("go: ") if lines else "looking what there is to do"
    return (
        f"{recipe.title}: {elapsed_s:.0f} s, {fetched} modules fetched, "
        f"{compiled} packages compiled: {latest}"
    )


def _wait_briefly(process: ManagedProcess) -> None:
    try:
        process.popen.wait(0.5)
    except subprocess.TimeoutExpired:
        return
