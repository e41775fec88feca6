"""Builds the control plane's programs once, from source, and keeps them in the user's cache.

The sources are Go modules in `go/` (etcd, Kubernetes, kwok, Helm) and its subfolders: Prometheus,
Kueue, the programs of real nodes, and the tools of a release. The cache key is a hash of go.mod,
go.sum, our Go files beside them, and the flags.
"""

import fcntl
import hashlib
import json
import math
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from greensched_policies.library.loading import is_loadable, load
from greensched_testbed.errors import BuildFailed
from greensched_testbed.go_toolchain import find_go
from greensched_testbed.processes import ManagedProcess, start_process, tail
from greensched_testbed.progress import LiveLine

KUBERNETES_VERSION = "v1.36.3"
_MODULES = Path(__file__).parent / "go"
_STALE = "{{if .Stale}}{{.ImportPath}}{{end}}"
_KUEUE_MODULE = "sigs.k8s.io/kueue"
_KIND_MODULE = "sigs.k8s.io/kind"
_VERSION_PACKAGE = "k8s.io/component-base/version"


@dataclass(frozen=True)
class Recipe:
    """One Go module and the programs built from its tools."""

    title: str
    module: Path
    programs: tuple[str, ...]
    cpu_minutes: float  # measured without a cache, for the announcement
    flags: tuple[str, ...]
    renamed: Mapping[str, str] = field(default_factory=dict)  # our name by Go's

    def key(self) -> str:
        """Return the cache key of the result."""
        digest = hashlib.sha256()
        own = sorted(self.module.glob("*.go"))
        for part in (self.module / "go.mod", self.module / "go.sum", *own):
            digest.update(part.read_bytes())
        digest.update("\0".join((*self.flags, *self.programs)).encode())
        return digest.hexdigest()[:16]


# Without these flags the server reports a version that kubectl and Helm cannot parse.
_KUBERNETES_FLAGS = (
    "-ldflags",
    f"-s -w -X {_VERSION_PACKAGE}.gitVersion={KUBERNETES_VERSION}"
    f" -X {_VERSION_PACKAGE}.gitMajor=1 -X {_VERSION_PACKAGE}.gitMinor=36",
)
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
    flags=_KUBERNETES_FLAGS,
    renamed={"server": "etcd"},  # the module go.etcd.io/etcd/server/v3 is the program
)
PROMETHEUS = Recipe(
    title="Prometheus server",
    module=_MODULES / "prometheus",
    programs=("prometheus",),
    cpu_minutes=4.0,
    # Service discovery by Kubernetes only, not by clouds: fewer packages to compile.
    flags=("-tags", "remove_all_sd enable_kubernetes_sd", "-ldflags", "-s -w"),
)
KUEUE = Recipe(
    title="Kueue controller",
    module=_MODULES / "kueue",
    programs=("kueue",),
    cpu_minutes=6.0,
    flags=("-ldflags", "-s -w"),
)
NODE_RECIPE = Recipe(
    title="Kubernetes node",
    module=_MODULES / "node",
    programs=("kubelet", "kube-proxy"),
    cpu_minutes=5.0,
    flags=_KUBERNETES_FLAGS,
)
POD_NETWORK = Recipe(
    title="CNI plugins",
    module=_MODULES / "cni",
    programs=("host-local", "loopback", "ptp"),
    cpu_minutes=0.3,
    flags=("-ldflags", "-s -w"),
)
DNS = Recipe(
    title="cluster's DNS",
    module=_MODULES / "coredns",
    programs=("coredns",),
    cpu_minutes=2.5,
    flags=("-ldflags", "-s -w"),
)
RELEASE = Recipe(
    title="tools of a release",
    module=_MODULES / "release",
    programs=("cosign", "crane", "syft"),
    cpu_minutes=12.0,
    # Syft writes its version into each SBOM.
    flags=("-ldflags", "-s -w -X main.version=v1.57.0"),
)
CONTAINERD = Recipe(
    title="containerd of kind's nodes",
    module=_MODULES / "containerd",
    programs=("containerd", "containerd-shim-runc-v2", "ctr"),
    cpu_minutes=5.0,
    # kind's nodes use only overlayfs; btrfs would need a C compiler.
    flags=("-tags", "no_btrfs no_devmapper no_zfs", "-ldflags", "-s -w"),
)
CRI_TOOLS = Recipe(
    title="crictl of kind's nodes",
    module=_MODULES / "crictl",
    programs=("crictl",),
    cpu_minutes=3.0,
    flags=("-ldflags", "-s -w"),
)
KUBEADM = Recipe(
    title="kubeadm of kind's nodes",
    module=_MODULES / "kubeadm",
    programs=("kubeadm",),
    cpu_minutes=4.0,
    flags=_KUBERNETES_FLAGS,
)
KIND = Recipe(
    title="kind",
    module=_MODULES / "kind",
    programs=("kind",),
    cpu_minutes=0.5,
    flags=("-ldflags", "-s -w"),
)


def compile_kernel() -> None:
    """Compile what the operator decides with, on first use, and show progress.

    The operator's processes find it then: they have no PATH to a linker, and their clock may be too
    fast to wait for a minute.
    """
    if not is_loadable():
        LiveLine().say("greensched: compiling the functions that decide (once, a minute)")
        load()


def control_plane_programs() -> Path:
    """Return the folder of the control plane's programs; build them on first use."""
    return built(CONTROL_PLANE)


def prometheus_program() -> Path:
    """Return the path of a Prometheus server; build it on first use."""
    return built(PROMETHEUS) / "prometheus"


def kueue_program() -> Path:
    """Return the path of Kueue's controller; build it on first use."""
    return built(KUEUE) / "kueue"


def kueue_crds() -> Path:
    """Return the folder of Kueue's CRDs, from the sources of its controller."""
    kueue_program()
    return _sources(KUEUE, _KUEUE_MODULE) / "config/components/crd/bases"


def kind_sources() -> Path:
    """Return the folder of kind's sources, which hold the files of its node image."""
    return _sources(KIND, _KIND_MODULE)


def _sources(recipe: Recipe, module: str) -> Path:
    # This downloads them again if `go clean -modcache` has removed them.
    command = [str(find_go(default_cache())), "mod", "download", "-json", module]
    environment = {**os.environ, "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"}
    result = subprocess.run(
        command, cwd=recipe.module, env=environment, capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise BuildFailed(f"cannot find the sources of {module}: {result.stderr.strip()}")
    return Path(json.loads(result.stdout)["Dir"])


def release_programs() -> Path:
    """Return the folder of the programs that make a release; build them on first use."""
    return built(RELEASE)


def default_cache() -> Path:
    """Return the folder that contains all builds."""
    return platformdirs.user_cache_path("greensched", appauthor=False) / "bin"


def built(recipe: Recipe, cache: Path | None = None) -> Path:
    """Return the folder with the recipe's programs; build them on first use, and show progress.

    Concurrent processes build only once. Raises BuildFailed with the log's path.
    """
    cache = cache or default_cache()
    result = cache / recipe.key()
    if result.is_dir():
        return result
    cache.mkdir(parents=True, exist_ok=True)
    with sole_builder(cache / f"{recipe.key()}.lock", recipe.title):
        if not result.is_dir():
            partial = cache / f"{recipe.key()}.partial"
            shutil.rmtree(partial, ignore_errors=True)  # left by a killed build
            partial.mkdir()
            LiveLine().say(announcement(recipe, cache))
            _build(recipe, find_go(cache), partial, cache / f"{recipe.key()}.log")
            partial.rename(result)
    return result


@contextmanager
def sole_builder(lock_file: Path, title: str) -> Iterator[None]:
    """Let one process build at a time; a process that waits prints what it waits for."""
    with lock_file.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            with LiveLine() as line:
                line.say(f"{title}: another process is building it; waiting until it has ended")
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield  # closing the file releases the lock


def _build(recipe: Recipe, go: Path, into: Path, log_file: Path) -> None:
    began = time.monotonic()
    with LiveLine() as line:
        listed = log_file.with_suffix(".packages")
        # List what the build will compile; this also downloads the modules.
        command: list[str | Path] = [go, "list", "-deps", "-f", _STALE, *recipe.flags, "tool"]
        _run(recipe, command, listed, lambda lines: line.update(_fetching(recipe, lines, began)))
        total = sum(bool(each) and not each.startswith("go: ") for each in _lines(listed))
        command = [go, "build", "-v", *recipe.flags, "-o", f"{into}/", "tool"]
        _run(recipe, command, log_file, lambda lines: line.update(
            f"{recipe.title}: {time.monotonic() - began:.0f} s, "
            + share_text(len(lines), total, lines[-1] if lines else "starting")
        ))  # fmt: skip
    _finish(recipe, into, log_file)
    LiveLine().say(f"{recipe.title}: built in {time.monotonic() - began:.0f} s")


def _run(
    recipe: Recipe,
    command: list[str | Path],
    log_file: Path,
    on_lines: Callable[[list[str]], None],
) -> None:
    """Run a build step, and pass its log to `on_lines` twice a second; raise BuildFailed."""
    log_file.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",  # no C compiler needed
        "GOFLAGS": "-mod=readonly -trimpath -buildvcs=false",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
    }
    process = start_process("go", command, log_file, environment=environment, folder=recipe.module)
    try:
        while process.is_running():
            on_lines(_lines(log_file))
            _wait_briefly(process)
    finally:
        process.kill()
    if process.popen.returncode != 0:
        raise BuildFailed(
            f"building the {recipe.title} failed (go exited with {process.popen.returncode}); "
            f"the whole log is {log_file}, its end:\n{tail(log_file)}"
        )


def _finish(recipe: Recipe, into: Path, log_file: Path) -> None:
    for theirs, ours in recipe.renamed.items():
        (into / theirs).rename(into / ours)
    missing = [name for name in recipe.programs if not (into / name).exists()]
    if missing:
        raise BuildFailed(f"go did not build {', '.join(missing)}; the log is {log_file}")


def announcement(recipe: Recipe, cache: Path | None = None) -> str:
    """Return what to say before the recipe's programs are built; "" if they are already."""
    if ((cache or default_cache()) / recipe.key()).is_dir():
        return ""
    minutes = math.ceil(recipe.cpu_minutes / (os.cpu_count() or 1))
    return (
        f"{recipe.title}: building {', '.join(recipe.programs)} from source, once: about "
        f"{f'{minutes} minutes' if minutes > 1 else 'a minute'} on an idle machine (less if Go has "
        "compiled parts of them before)"
    )


def _fetching(recipe: Recipe, lines: list[str], began: float) -> str:
    return (
        f"{recipe.title}: {time.monotonic() - began:.0f} s, checking what to build, "
        f"{sum(line.startswith('go: downloading') for line in lines)} modules fetched"
    )


def share_text(begun: int, total: int, latest: str) -> str:
    """Return a build's progress in packages that Go has begun, and the latest of them."""
    share = min(99, 100 * begun // total) if total else 99  # linking remains
    state = latest if begun < total else "linking"
    return f"package {min(begun, total)} of {total} ({share} %): {state}"


def _lines(log_file: Path) -> list[str]:
    return log_file.read_text(errors="replace").splitlines()


def _wait_briefly(process: ManagedProcess) -> None:
    try:
        process.popen.wait(0.5)
    except subprocess.TimeoutExpired:
        return
