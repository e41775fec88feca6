"""Fixtures shared by every component's tests: one real control plane for the whole run.

With `GREENSCHED_KUBECONFIG`, tests that need only an API server run on that cluster, and tests that
need their own control plane are skipped.
"""

import asyncio
import fcntl
import json
import os
import re
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import settings
from platformdirs import user_cache_path
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_simulator.policy import policy_named
from greensched_simulator.runs.simulation import simulate
from greensched_simulator.testing.small_worlds import make_world
from greensched_testbed.binaries import CONTROL_PLANE, KUEUE, PROMETHEUS, announcement
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.creating import exists
from greensched_testbed.errors import BuildFailed
from greensched_testbed.kueue import running_kueue

# A shell starts background jobs with SIGINT ignored, and their children inherit that: no test could
# interrupt a process that it started.
signal.signal(signal.SIGINT, signal.default_int_handler)

# For `make fuzz`; other runs always try the same examples (pyproject.toml).
settings.register_profile("new", max_examples=1000, deadline=None)

FOREIGN_KUBECONFIG = os.environ.get("GREENSCHED_KUBECONFIG")
_SERVICE_ACCOUNT_TIMEOUT_S = 30.0


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Run a control plane with kwok and a default scheduler, built on first use."""
    if FOREIGN_KUBECONFIG:
        pytest.skip("needs a control plane of our own, and GREENSCHED_KUBECONFIG names another")
    with ControlPlane() as running:
        yield running


@pytest.fixture
def api_access(request: pytest.FixtureRequest) -> ApiAccess:
    """Return access to the cluster under test: ours, or that of GREENSCHED_KUBECONFIG."""
    if FOREIGN_KUBECONFIG:
        return ApiAccess.from_kubeconfig(Path(FOREIGN_KUBECONFIG))
    ours: ControlPlane = request.getfixturevalue("control_plane")
    return ours.access


@pytest_asyncio.fixture
async def api(api_access: ApiAccess) -> AsyncIterator[ApiClient]:
    """Return a client of the cluster under test."""
    async with ApiClient(api_access) as client:
        yield client


@pytest_asyncio.fixture
async def namespace(api: ApiClient, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Create a namespace for this test, with its default service account."""
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = f"{words}-{uuid.uuid4().hex[:6]}"
    await api.create("/api/v1/namespaces", json.dumps({"metadata": {"name": name}}).encode())
    async with asyncio.timeout(_SERVICE_ACCOUNT_TIMEOUT_S):
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        while not await exists(api, account):  # there is no event to wait for
            await asyncio.sleep(0.05)
    yield name
    await api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the root of the checkout."""
    return Path(__file__).parent.parent


@pytest.fixture(scope="session")
def compiled_engine() -> None:
    """Compile the simulator's engine; of several processes, only one does so."""
    folder = user_cache_path("greensched", ensure_exists=True)
    with open(folder / "compiling", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        simulate(make_world([{}]), policy_named("run-now"))


@pytest.fixture(autouse=True)
def _engine(request: pytest.FixtureRequest) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ and request.node.get_closest_marker("engine"):
        request.getfixturevalue("compiled_engine")


@pytest.fixture(scope="module")
def kueue(control_plane: ControlPlane) -> Iterator[None]:
    """Run Kueue's controller during a module's tests."""
    try:
        with running_kueue(control_plane):
            yield
    except BuildFailed as fault:
        pytest.skip(f"Kueue cannot be built here: {fault}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run fail whose tests cannot run here."""
    parser.addoption("--none-skipped", action="store_true", help="fail if a test is skipped")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail under --none-skipped if a test was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not session.config.getoption("--none-skipped"):
        return
    if reporter.stats.get("skipped") and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


SERVER_MARKERS = ("controlplane", "helm", "kueue", "prometheus", "postgresql")
LONGEST = {"faults", "demo", "stress"}  # folders of tests that each take half a minute or more
SERVER_FIXTURES = {"control_plane", "api_access"}
BUILT_FOR = {
    "controlplane": CONTROL_PLANE,
    "helm": CONTROL_PLANE,
    "kueue": KUEUE,
    "prometheus": PROMETHEUS,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that start the control plane, and run unit tests first: they fail soonest."""
    for item in items:
        if SERVER_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("controlplane")
        for mark in item.iter_markers("finding"):  # into JUnit's file, for `make bench-real`
            item.user_properties.append(("finding", str(mark.args[0])))
    items.sort(key=_turn)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say that a test first builds a server, which takes minutes; else pytest captures the line."""
    capture = item.config.pluginmanager.get_plugin("capturemanager")
    asked = {recipe.title: recipe for marker, recipe in BUILT_FOR.items()
             if item.get_closest_marker(marker)}  # fmt: skip
    for recipe in asked.values():
        if capture is not None and not FOREIGN_KUBECONFIG and announcement(recipe):
            with capture.global_and_fixture_disabled():
                print(f"\n{announcement(recipe)}", file=sys.stderr, flush=True)


def _turn(item: pytest.Item) -> int:
    """Return a sort key: unit tests first, but for workers what takes longest."""
    if LONGEST & {*item.path.parts}:
        return -1 if "PYTEST_XDIST_WORKER" in os.environ else 2
    return any(item.get_closest_marker(name) for name in SERVER_MARKERS)


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # the package has no types
    """Gives each worker whole files, and all of the longest to one worker.

    Two days at a time on two cores would be late only for lack of cores. Nor does one worker run
    them last, while the others have nothing left.
    """

    def _split_scope(self, nodeid: str) -> str:
        is_long = not LONGEST.isdisjoint(nodeid.split("::")[0].split("/"))
        return "longest" if is_long else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    """Return the scheduler that distributes tests by file."""
    return ByFile(config, log)
