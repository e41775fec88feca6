"""The chart on a cluster whose nodes run containers: real nodes of this machine, kind, or yours.

`GREENSCHED_E2E_KUBECONFIG` names a cluster; without it two real nodes are started here. Tests know
the cluster only by kubectl and Helm, and are skipped if it lacks something.
"""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from greensched_core import labels
from greensched_core.errors import BadInput
from greensched_testbed.binaries import kueue_program
from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.end_to_end.container_use import ContainerUse
from greensched_testbed.end_to_end.foreign_cluster import (
    EXTENDER_IMAGE,
    KUBECONFIG,
    OPERATOR_IMAGE,
    foreign_cluster,
)
from greensched_testbed.end_to_end.last_release import LastRelease
from greensched_testbed.end_to_end.last_release import last_release as built_last_release
from greensched_testbed.end_to_end.real_cluster import (
    image_archives,
    meter_archives,
    real_cluster,
)
from greensched_testbed.end_to_end.release import NAMESPACE, ChartRelease, install, remove_all
from greensched_testbed.end_to_end.two_grids import CLEAN, DIRTY, publish_grids
from greensched_testbed.end_to_end.work import cron_job, job, pod_template
from greensched_testbed.errors import BuildFailed, CannotBuildHere
from greensched_testbed.real_nodes.cluster import build_programs
from greensched_testbed.real_nodes.machine_state import machine_state
from greensched_testbed.requirements import IMAGES, NODES, missing

ROOT = Path(__file__).parents[2]

_figures: dict[str, float | str] = {}  # for `make bench-real`
_use: list[ContainerUse] = []
_ends = {"skipped": 0, "ran": 0}  # tests of this folder
_FIGURES = ROOT / "build/e2e/figures.json"
# Seed 46 asks for a quarter of a core each, and both run equally long: 45 s.
LONG_JOBS = "--rounds 1 --jobs 2 --seed 46 --span-s 0 --runtime-s 40 --wait-s 0".split()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test of this folder; leave out those that do not use the cluster that is named.

    They start nodes or an engine on this machine, which nobody asked for.
    """
    ours = [item for item in items if Path(__file__).parent in item.path.parents]
    others = [each for each in ours if "cluster" not in getattr(each, "fixturenames", ())]
    for item in ours:
        item.add_marker("e2e")
    for item in others:  # into JUnit's file, for `make bench-real`: `e2e_s` does not contain them
        item.user_properties.append(("apart", "true"))
    if os.environ.get(KUBECONFIG):
        items[:] = [each for each in items if each not in others]
        config.hook.pytest_deselected(items=others)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the tests of this folder that ran, and those that were skipped."""
    if report.nodeid.startswith("tests/e2e/"):
        _ends["skipped"] += report.skipped
        _ends["ran"] += report.when == "call" and not report.skipped


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a run on a named cluster in which every test was skipped; it would look like success."""
    if _nothing_ran(exitstatus):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _nothing_ran(exitstatus: int) -> bool:
    is_silent = exitstatus == pytest.ExitCode.OK and _ends["skipped"] > 0 and _ends["ran"] == 0
    return is_silent and bool(os.environ.get(KUBECONFIG))


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int) -> None:
    """Print and write the duration of each stage, and what was left behind."""
    if _nothing_ran(exitstatus):
        terminalreporter.write_line(
            f"e2e: no test ran on the cluster that {KUBECONFIG} names; see why each was skipped",
            red=True,
        )
    for name, figure in _figures.items():
        text = f"{figure:.3g}" if isinstance(figure, float) else figure
        terminalreporter.write_line(f"e2e: {name}: {text}")
    if _figures:
        _FIGURES.parent.mkdir(parents=True, exist_ok=True)
        _FIGURES.write_text(json.dumps(_figures, indent=2) + "\n")


@pytest.fixture(scope="session")
def last_release(tmp_path_factory: pytest.TempPathFactory) -> LastRelease:
    """Build the last release from the clone's history."""
    if lacks := missing(IMAGES):
        pytest.skip(f"images of the last release need {'; '.join(lacks)}")
    try:
        return built_last_release(ROOT, tmp_path_factory.mktemp("last-release"))
    except CannotBuildHere as fault:
        pytest.skip(str(fault))


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterAccess]:
    """Return the cluster under test; the run fails if real nodes leave something behind.

    Everything that tests install on a named cluster is removed at the end.
    """
    home = tmp_path_factory.mktemp("home")
    if os.environ.get(KUBECONFIG):
        try:
            found = foreign_cluster(home)
        except BadInput as fault:
            pytest.exit(str(fault), returncode=1)
        yield found
        remove_all(found)
        return
    lacks = missing(IMAGES, NODES)
    if lacks:
        pytest.skip(f"real nodes need {'; '.join(lacks)}")
    _build_for(request)
    before, began = machine_state(), time.monotonic()
    with real_cluster(ROOT, home) as running:
        _figures["nodes_ready_s"] = time.monotonic() - began  # images loaded too
        yield running
        closing = time.monotonic()
    left = before.differences(machine_state())
    _figures["removed_s"] = time.monotonic() - closing
    _figures["e2e_s"] = time.monotonic() - began
    _figures["left_behind"] = len(left)
    if left:
        _figures["left_behind_are"] = "; ".join(left)
    assert not left


def _build_for(request: pytest.FixtureRequest) -> None:
    """Build all programs and images of the selected tests before the nodes start.

    The test that needs one reports a failed build again.
    """

    def of_nodes() -> None:
        image_archives(ROOT)  # first: a broken Dockerfile is reported at once, not after minutes
        build_programs()

    builders: dict[str, Callable[[], object]] = {
        "cluster": of_nodes,
        "kueue": kueue_program,
        "last_release": lambda: request.getfixturevalue("last_release"),
        "measured": meter_archives,
    }
    for fixture in _wanted(request) & builders.keys():
        with suppress(BuildFailed, pytest.skip.Exception):
            builders[fixture]()


def _wanted(request: pytest.FixtureRequest) -> set[str]:
    """Return the fixtures of all selected tests."""
    return {name for each in request.session.items for name in getattr(each, "fixturenames", ())}


@pytest.fixture(scope="session")
def release(cluster: ClusterAccess) -> Iterator[ChartRelease]:
    """Install the chart in mode enforce, wait until all is Ready, and publish two grids."""
    if not (cluster.can.extender_image and cluster.can.operator_image):
        pytest.skip(
            f"{cluster.can.kind} has no images of ours; name them by {EXTENDER_IMAGE} and"
            f" {OPERATOR_IMAGE}"
        )
    made = install(cluster, ROOT / "deploy/helm/greensched")
    _figures["install_ready_s"] = made.install_s
    publish_grids(cluster)
    with ContainerUse(cluster, NAMESPACE) as watching:
        _use.append(watching)
        yield made
    for name, share in sorted(watching.shares().items()):
        _figures[f"memory_share_{name}"] = share
        _figures[f"throttled_s_{name}"] = watching.throttled_s[name]  # none without a CPU limit
    _figures["worst_memory_share"] = max(watching.shares().values(), default=float("nan"))


@pytest.fixture
def figures() -> dict[str, float | str]:
    """What is printed and written at the end; a test adds what it measured."""
    return _figures


@pytest.fixture
def use(release: ChartRelease, cluster: ClusterAccess) -> ContainerUse:
    """Return the peak use of each container of the release, by the kubelets."""
    if not cluster.can.kubelet_metrics:
        pytest.skip(f"{cluster.can.kind}: its kubelets cannot be asked")
    assert _use, "it began with the release"
    return _use[0]


@pytest.fixture
def shell(cluster: ClusterAccess) -> str:
    """Return an image with a shell."""
    if not cluster.can.shell_image:
        pytest.skip(f"{cluster.can.kind} has no image with a shell")
    return cluster.can.shell_image


@pytest.fixture(scope="session")
def zones(cluster: ClusterAccess) -> dict[str, str]:
    """Return each node's grid zone; skip without a node of the zone in which waiting saves."""
    nodes = json.loads(cluster.kubectl("get", "nodes", "--output", "json"))["items"]
    found = {each["metadata"]["name"]: each["metadata"]["labels"] for each in nodes}
    by_node = {name: said.get(labels.GRID_ZONE, "") for name, said in found.items()}
    if CLEAN not in by_node.values():
        pytest.skip(f"{cluster.can.kind} has no node with the label {labels.GRID_ZONE}={CLEAN}")
    return by_node


@pytest.fixture
def two_zones(cluster: ClusterAccess, zones: dict[str, str]) -> dict[str, str]:
    """Return each node's grid zone; skip if there is only one, where no score decides."""
    if DIRTY not in zones.values():
        pytest.skip(f"{cluster.can.kind} has no node with the label {labels.GRID_ZONE}={DIRTY}")
    return zones


@dataclass(frozen=True)
class EarlyBenchmark:
    """`greensched benchmark`, which begins before other tests and runs while they do."""

    process: subprocess.Popen[str]
    folder: Path  # for its results

    def wait(self, timeout_s: float) -> str:
        """Return what it printed when all its Jobs have completed."""
        told, _ = self.process.communicate(timeout=timeout_s)
        assert self.process.returncode == 0, told
        return told


@pytest.fixture(scope="session")
def early_benchmark(
    cluster: ClusterAccess, release: ChartRelease, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EarlyBenchmark]:
    """Begin a benchmark of two Jobs that we place, long enough for kubelets to see them."""
    if not cluster.can.kubelet_metrics:
        pytest.skip(f"{cluster.can.kind}: its kubelets cannot be asked")
    if not cluster.can.shell_image:
        pytest.skip(f"{cluster.can.kind} has no image with a shell")
    folder = tmp_path_factory.mktemp("benchmark")
    command = [sys.executable, "-m", "greensched_cli", "benchmark", "--cluster"]
    command += ["--strategies", "greensched-at-once", "--out", str(folder)]
    command += [*LONG_JOBS, "--image", cluster.can.shell_image]
    with subprocess.Popen(
        command,
        env=cluster.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield EarlyBenchmark(process, folder)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)  # it deletes its namespace


@dataclass(frozen=True)
class EarlyWork:
    """Work that is created before other tests, so that it is due when they have run."""

    namespace: str
    opens: datetime  # when the Job `windowed` may start at the earliest
    runs: datetime  # when the CronJob `nightly` runs


@pytest.fixture(scope="session")
def early_work(
    request: pytest.FixtureRequest,
    cluster: ClusterAccess,
    release: ChartRelease,
    zones: dict[str, str],
) -> Iterator[EarlyWork]:
    """Create a Job whose window opens in one to two minutes, and a CronJob that runs then.

    The benchmark begins too if a selected test reads it.
    """
    if not cluster.can.shell_image:
        pytest.skip(f"{cluster.can.kind} has no image with a shell")
    if "early_benchmark" in _wanted(request):
        with suppress(pytest.skip.Exception):
            request.getfixturevalue("early_benchmark")
    minute = timedelta(minutes=1)
    soon = datetime.now(UTC).replace(second=0, microsecond=0) + 2 * minute
    made = EarlyWork(f"early-{uuid.uuid4().hex[:6]}", soon, soon)
    cluster.kubectl("create", "namespace", made.namespace)
    template = pod_template(cluster.can.shell_image)
    # It closes before power is cleaner, so its first moment is the best start.
    window = f"{made.opens:%H:%M}-{made.opens + 30 * minute:%H:%M} UTC"
    cluster.apply(
        job("windowed", template, window=window, runtime="10m"),
        cron_job("nightly", f"{made.runs:%M %H} * * *", template, deadline="6h", runtime="10m"),
        namespace=made.namespace,
    )
    yield made
    cluster.kubectl("delete", "namespace", made.namespace, "--wait=false")


@pytest.fixture
def users(cluster: ClusterAccess, early_work: EarlyWork) -> Iterator[str]:
    """Create a namespace of users, in which the cluster's policy holds work."""
    name = f"users-{uuid.uuid4().hex[:6]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def greensched(cluster: ClusterAccess) -> Callable[..., str]:
    """Return a runner of the command line as a user; it must exit with `status`."""

    def run(*arguments: str, status: int = 0) -> str:
        result = subprocess.run(
            [sys.executable, "-m", "greensched_cli", *arguments],
            env=cluster.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == status, result.stderr
        return result.stdout + result.stderr

    return run
