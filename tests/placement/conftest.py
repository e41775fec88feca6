"""A cluster with GreenSched: real control plane, chart, extender and second scheduler.

These tests have their own control plane, so that its chart does not conflict with other tests'. A
module that needs other values of the chart names them in `CHART_VALUES`.
"""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import httpx
import msgspec
import psutil
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from greensched_core import labels
from greensched_core.clock import WallClock
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.watching import Watch
from greensched_simulator.formats.synthetic_grid import SyntheticSlot
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.demo.billing import BillAssumptions
from greensched_testbed.demo.cluster import EXTENDER, GreenSchedProcesses, publish_grid
from greensched_testbed.nodes import EqualNodes, create_nodes, delete_nodes, wait_until_ready

GIB = 2.0**30
Found = TypeVar("Found")
ASSUMED = BillAssumptions(utilisation_ratio=0.5, gpu_ratio=0.6, default_pue=1.0)
PATIENCE_S = 90.0  # for what takes a second on an idle machine
_POLL_S = 0.1
_TEST_LABEL = "placement-test"
_PROBE = "probe-"
_SIGNALS = f"/apis/{labels.GROUP}/{labels.VERSION}/{labels.GRID_SIGNALS}"
# No pods of the chart: kwok would run them on the tests' nodes.
_NO_PODS = ("extender.replicas=0", "scheduler.replicas=0")


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Run a control plane for these tests; a process that outlives it is a failure."""
    if "GREENSCHED_KUBECONFIG" in os.environ:
        pytest.skip("needs a control plane of our own, and GREENSCHED_KUBECONFIG names another")
    with ControlPlane() as running:
        yield running
        started = [psutil.Process(process.pid) for process in running.processes.all()]
        started += [child for process in started for child in process.children(recursive=True)]
    assert [process for process in started if process.is_running()] == []


class Installed:
    """GreenSched as the chart installs it; upgraded only if a module needs other values."""

    def __init__(self, plane: ControlPlane) -> None:
        self.processes = GreenSchedProcesses(plane, ASSUMED)
        self._values: tuple[str, ...] | None = None

    def with_values(self, values: Sequence[str]) -> None:
        """Run it with these values, each in the form of `helm --set`."""
        if tuple(values) == self._values:
            return
        self.processes.stop()
        settings = [part for value in (*_NO_PODS, *values) for part in ("--set", value)]
        self.processes.install_chart(*settings)
        self.processes.start()
        self._values = tuple(values)


@pytest.fixture(scope="session")
def installed(control_plane: ControlPlane) -> Installed:
    """Return the one release in our control plane."""
    return Installed(control_plane)


@pytest.fixture(scope="module")
def greensched(installed: Installed, request: pytest.FixtureRequest) -> GreenSchedProcesses:
    """Return extender and second scheduler, with the values that the module names."""
    installed.with_values(getattr(request.module, "CHART_VALUES", ()))
    return installed.processes


class _Named(msgspec.Struct):
    name: str


class _PodSpec(msgspec.Struct):
    nodeName: str = ""


class _Pod(msgspec.Struct):
    metadata: _Named
    spec: _PodSpec


class Placements:
    """Which node each pod of a namespace was bound to, in the order of binding."""

    def __init__(self) -> None:
        self.node_of: dict[str, str] = {}
        self.probed: set[str] = set()  # nodes that a probe was bound to
        self._changed = asyncio.Event()

    def list_began(self) -> None:
        """Do nothing: a list has no new bindings."""

    def list_ended(self) -> None:
        """Do nothing: a deleted pod was bound too."""

    def upsert(self, item: _Pod) -> None:
        """Record the node of a bound pod."""
        if not item.spec.nodeName:
            return
        if item.metadata.name.startswith(_PROBE):
            self.probed.add(item.spec.nodeName)
        else:
            self.node_of[item.metadata.name] = item.spec.nodeName
        self._changed.set()

    def remove(self, item: _Pod) -> None:
        """Do nothing: a deleted pod was bound too."""

    async def until(self, claim: Callable[[], bool]) -> None:
        """Wait until a claim about `node_of` holds."""
        while not claim():
            self._changed.clear()
            await self._changed.wait()


@dataclass
class Scene:
    """One test's nodes and pods; only its pods go to its nodes."""

    plane: ControlPlane
    greensched: GreenSchedProcesses
    api: ApiClient
    api_access: ApiAccess
    namespace: str
    http: httpx.AsyncClient
    placements: Placements = field(default_factory=Placements)
    nodes: list[str] = field(default_factory=list)
    signals: set[str] = field(default_factory=set)

    @property
    def pods_path(self) -> str:
        """Return the path of this test's pods."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def own_nodes(self) -> dict[str, str]:
        """Return the labels of this test's nodes."""
        return {_TEST_LABEL: self.namespace}

    @staticmethod
    def machine(
        idle_w: float,
        peak_w: float,
        *,
        zone: str = "",
        cpu_cores: float = 16,
        curve: Sequence[float] = (),
        **more: Any,
    ) -> EqualNodes:
        """Return a node whose watts grow linearly from idle to peak, or along the curve."""
        points = curve or [idle_w + (peak_w - idle_w) * tenth / 10 for tenth in range(11)]
        annotations = {labels.POWER_CURVE_WATTS: ",".join(f"{watts:.3f}" for watts in points)}
        annotations |= more.pop("annotations", {})
        return EqualNodes(
            **{
                "count": 1,
                "name_prefix": "node",
                "cpu_cores": cpu_cores,
                "memory_bytes": 256 * GIB,
                "grid_zone": zone,
                "annotations": annotations,
                **more,
            }
        )

    async def offer(
        self, *groups: EqualNodes, scheduler: str = labels.SCHEDULER_NAME
    ) -> tuple[str, ...]:
        """Create the nodes; return their names once extender and scheduler know them as Ready."""
        named = [
            replace(
                group,
                name_prefix=f"{group.name_prefix}-{uuid.uuid4().hex[:6]}",
                extra_labels={**group.extra_labels, _TEST_LABEL: self.namespace},
            )
            for group in groups
        ]
        names = await create_nodes(self.api, named)
        self.nodes += names
        await wait_until_ready(self.api, names, PATIENCE_S)
        await self.until_believed(lambda nodes: nodes.keys() >= set(names))
        await self._probe(names, scheduler)
        return names

    async def _probe(self, nodes: Sequence[str], scheduler: str) -> None:
        """Have the scheduler bind a pod without requests to each node, so that it knows them."""
        for node in nodes:
            selector = {labels.HOSTNAME: node}
            await self.create(_PROBE + node, cpu=0, scheduler=scheduler, nodeSelector=selector)
        async with asyncio.timeout(PATIENCE_S):
            await self.placements.until(lambda: self.placements.probed >= set(nodes))
        for node in nodes:
            await self.api.delete(f"{self.pods_path}/{_PROBE}{node}", {"gracePeriodSeconds": 0})

    async def create(
        self,
        *pods: str,
        cpu: float = 1.0,
        gpus: int = 0,
        scheduler: str = labels.SCHEDULER_NAME,
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """Create pods at the same time."""
        marks = {labels.RUNTIME: "1h", **(annotations or {})}
        asked = {labels.CPU: f"{round(cpu * 1000)}m", labels.MEMORY: "128Mi"} if cpu else {}
        resources: dict[str, Any] = {"requests": asked}
        if gpus:
            resources = {"requests": asked, "limits": {labels.NVIDIA_GPU: str(gpus)}}
        bodies = [
            {
                "metadata": {"name": pod, "annotations": marks},
                "spec": {
                    "schedulerName": scheduler,
                    "nodeSelector": self.own_nodes,
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{"name": "main", "image": "pause", "resources": resources}],
                    **spec,
                },
            }
            for pod in pods
        ]
        async with asyncio.TaskGroup() as creations:
            for body in bodies:
                creations.create_task(self.api.create(self.pods_path, msgspec.json.encode(body)))

    async def bound(self, *pods: str, timeout_s: float = PATIENCE_S) -> list[str]:
        """Return the nodes that the pods were bound to; fail if some wait too long."""
        node_of = self.placements.node_of
        try:
            async with asyncio.timeout(timeout_s):
                await self.placements.until(lambda: node_of.keys() >= set(pods))
        except TimeoutError:
            waiting = [pod for pod in pods if pod not in node_of]
            pytest.fail(f"{waiting} wait; {await self.events(waiting[0])}")
        return [node_of[pod] for pod in pods]

    async def place(self, *pods: str, **options: Any) -> list[str]:
        """Create each pod once the one before is bound; return their nodes."""
        found = []
        for pod in pods:
            await self.create(pod, **options)
            found += await self.bound(pod)
        return found

    async def events(self, pod: str) -> list[dict[str, Any]]:
        """Return the events about a pod."""
        raw = await self.api.get(
            f"/api/v1/namespaces/{self.namespace}/events",
            {"fieldSelector": f"involvedObject.name={pod}"},
        )
        found: list[dict[str, Any]] = json.loads(raw)["items"]
        return found

    async def publish(self, zone: str, carbon_g_per_kwh: float, price_per_mwh: float) -> None:
        """Publish a zone's grid, constant for a day; return once the extender uses it."""
        slots = [SyntheticSlot(at, carbon_g_per_kwh, price_per_mwh) for at in (0.0, 86_400.0)]
        await publish_grid(
            self.api, {zone: slots}, starts_at=WallClock().now(), wall_s_per_workload_s=1.0
        )
        self.signals.add(zone)

        def is_taken(nodes: dict[str, Any]) -> bool:
            here = [node for node in nodes.values() if node["zone"] == zone]
            return all(node["carbonGramsPerKwh"] == carbon_g_per_kwh for node in here)

        await self.until_believed(is_taken)
        # The extender looks up a zone once per second of the clock.
        await asyncio.sleep(1.05 - WallClock().now() % 1.0)

    async def believed(self) -> dict[str, dict[str, Any]]:
        """Return the extender's data of each node, by name."""
        reply = await self.http.get(f"{self.greensched.explain_url}/v1/nodes")
        return {node["name"]: node for node in reply.raise_for_status().json()["nodes"]}

    async def until_believed(self, claim: Callable[[dict[str, dict[str, Any]]], bool]) -> None:
        """Wait until a claim about the extender's nodes holds."""
        async with asyncio.timeout(PATIENCE_S):
            while not claim(await self.believed()):
                await asyncio.sleep(_POLL_S)

    async def until(self, look: Callable[[], Awaitable[Found]]) -> Found:
        """Repeat a look until its result is not empty, and return that."""
        async with asyncio.timeout(PATIENCE_S):
            while not (found := await look()):
                await asyncio.sleep(_POLL_S)
        return found

    async def metric(self, name: str, **wanted: str) -> float:
        """Return a metric of the extender, summed over all series with these labels."""
        text = (await self.http.get(f"{self.greensched.extender_url}/metrics")).text
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"greensched_extender_{name}"
            and wanted.items() <= sample.labels.items()
        )

    async def end(self) -> None:
        """Remove the test's nodes and signals."""
        await delete_nodes(self.api, self.nodes)
        for zone in self.signals:
            await self.api.delete(f"{_SIGNALS}/{zone.lower()}")


@pytest_asyncio.fixture
async def scene(
    control_plane: ControlPlane,
    greensched: GreenSchedProcesses,
    api: ApiClient,
    api_access: ApiAccess,
    namespace: str,
) -> AsyncIterator[Scene]:
    """Give this test its nodes and pods; at the end, assert that the extender had no exception."""
    async with httpx.AsyncClient(timeout=10.0, trust_env=False) as http, ApiClient(api_access) as w:
        opened = Scene(control_plane, greensched, api, api_access, namespace, http)
        decode = msgspec.json.Decoder(_Pod).decode
        watch = Watch(w, opened.pods_path, decode, opened.placements, WallClock())
        watching = asyncio.create_task(watch.run())
        try:
            yield opened
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await opened.end()
        assert await opened.metric("fallbacks_total", reason="exception") == 0
    log = control_plane.processes[EXTENDER].log_file.read_text()
    assert "Traceback" not in log and '"exception"' not in log
