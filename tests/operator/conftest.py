"""The operator's processes on a real API server, and what providers of signals send."""

import asyncio
import io
import json
import time
import uuid
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from greensched_core import labels
from greensched_core.api_paths import CONFIGURATIONS, config_maps_path
from greensched_core.clock import WallClock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.signals.grid import GridSlot, ZoneForecast, object_name, to_status
from greensched_core.signals.timestamps import parse_timestamp
from greensched_core.signals.watched import GRID_SIGNALS_PATH
from greensched_operator.controller.controller_process import ControllerProcess
from greensched_operator.release.releaser import Releaser
from greensched_operator.runtime.heartbeat import Heartbeat
from greensched_operator.runtime.own_lease import OwnLease
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.webhook.certificate_controller import CertificateController
from greensched_operator.webhook.webhook import SIGN_OF_LIFE, WebhookProcess
from greensched_operator.webhook.webhook_app import MUTATE
from greensched_operator.writing.metrics import ControllerMetrics
from greensched_testbed.creating import exists
from greensched_testbed.nodes import EqualNodes, create_nodes, delete_nodes, wait_until_ready
from greensched_testbed.ports import free_port

CRDS = Path(__file__).resolve().parents[2] / "deploy/helm/greensched/files/crds"
_CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_PLACE = "tests.greensched.io/place"
PATIENCE_S = 60.0  # for what takes a second on an idle machine
_POLL_S = 0.05
GREEN_POLICIES = f"/apis/{labels.GROUP}/{labels.VERSION}/namespaces"
_ANSWERS = Path(__file__).resolve().parents[1] / "golden" / "providers"
_ANSWERED = parse_timestamp("2026-01-19T12:10:00Z")


@pytest.fixture
def now() -> float:
    """Return a time at which every stored answer of a provider is valid, in epoch seconds."""
    return _ANSWERED


@pytest.fixture(scope="session")
def golden() -> Callable[[str], bytes]:
    """Return a reader of providers' stored answers; `.zip` names are zipped, as CAISO does."""

    def read(name: str) -> bytes:
        if not name.endswith(".zip"):
            return (_ANSWERS / name).read_bytes()
        (inner,) = _ANSWERS.glob(f"{Path(name).stem}.*")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"20260119_PRC_LMP{inner.suffix}", inner.read_bytes())
        return packed.getvalue()

    return read


async def until(claim: Callable[[], Awaitable[Any]], what: str) -> Any:
    """Return the first true result of a claim; fail if it does not come in time."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        found = await claim()
        if found:
            return found
        await asyncio.sleep(_POLL_S)  # another process changes it
    raise AssertionError(f"not within {PATIENCE_S:.0f} s: {what}")


@pytest_asyncio.fixture
async def crds(api: ApiClient) -> None:
    """Define our custom resources in the API server."""
    for file in sorted(CRDS.glob("*.yaml")):
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
        name = found["metadata"]["name"]
        if not await exists(api, f"{_CRD_PATH}/{name}"):
            try:
                await api.create(_CRD_PATH, json.dumps(found).encode())
            except ApiUnavailable as fault:
                if fault.status != 409:
                    raise
        plural = found["spec"]["names"]["plural"]
        path = f"/apis/{labels.GROUP}/{labels.VERSION}/{plural}"
        await until(partial(_is_served, api, path), f"{plural} are served")


async def _is_served(api: ApiClient, path: str) -> bool:
    try:
        return await exists(api, path)
    except ApiUnavailable as fault:
        if fault.status != 429:  # "storage is (re)initializing", just after its creation
            raise
        return False


@dataclass
class Place:
    """A namespace of users, and an operator in another namespace that watches it."""

    api: ApiClient
    namespace: str
    own: str
    settings: OperatorSettings
    access: ApiAccess
    signals: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)

    @property
    def jobs(self) -> str:
        """Return the path of its Jobs."""
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def pods(self) -> str:
        """Return the path of its pods."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    async def green_policy(self, name: str = "default", **spec: Any) -> None:
        """Create a GreenPolicy in the users' namespace."""
        body = {
            "apiVersion": f"{labels.GROUP}/{labels.VERSION}",
            "kind": "GreenPolicy",
            "metadata": {"name": name},
            "spec": spec,
        }
        path = f"{GREEN_POLICIES}/{self.namespace}/{labels.GREEN_POLICIES}"
        await self.api.create(path, json.dumps(body).encode())

    async def create_job(self, name: str, **annotations: str) -> dict[str, Any]:
        """Create a Job with our annotations: `max_delay` means greensched.io/max-delay."""
        return await self.create(self.jobs, self.job(name, **annotations))

    async def create_pod(self, name: str, **annotations: str) -> dict[str, Any]:
        """Create a pod with our annotations."""
        return await self.create(self.pods, self.pod(name, **annotations))

    def job(
        self, name: str, scheduler: str = labels.SCHEDULER_NAME, **annotations: str
    ) -> dict[str, Any]:
        """Return a Job with our annotations."""
        return {
            "metadata": {"name": name, "annotations": _annotations(annotations)},
            "spec": {"template": {"metadata": {}, "spec": _pod_spec(scheduler, self.own)}},
        }

    def pod(self, name: str, **annotations: str) -> dict[str, Any]:
        """Return a pod with our annotations."""
        return {
            "metadata": {"name": name, "annotations": _annotations(annotations)},
            "spec": _pod_spec(labels.SCHEDULER_NAME, self.own),
        }

    async def until(self, claim: Callable[[], Awaitable[Any]], what: str) -> Any:
        """Return the first true result of a claim; fail if it does not come in time."""
        return await until(claim, what)

    async def started(self, path: str) -> dict[str, Any] | None:
        """Return a Job or pod once GreenSched holds it no longer, else None."""
        found = await self.get(path)
        gates = [each["name"] for each in found["spec"].get("schedulingGates", ())]
        is_held = found["spec"].get("suspend") or labels.GATE in gates
        return None if is_held else found

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object, and return it as stored."""
        made: dict[str, Any] = json.loads(await self.api.create(path, json.dumps(body).encode()))
        return made

    async def get(self, path: str) -> dict[str, Any]:
        """Return an object."""
        found: dict[str, Any] = json.loads(await self.api.get(path))
        return found

    @asynccontextmanager
    async def webhook(self, *, has_heartbeat: bool = True) -> AsyncIterator[WebhookProcess]:
        """Run a webhook that the API server calls for the users' namespace.

        With `has_heartbeat` it holds work, as if a releaser were alive.
        """
        path = f"{CONFIGURATIONS}/{self.settings.webhook_configuration}"
        await self.api.create(CONFIGURATIONS, json.dumps(webhook_configuration(self)).encode())
        stop = asyncio.Event()
        process = WebhookProcess(self.settings, self.api, self.settings.clock)
        running = asyncio.create_task(process.run(stop))
        beating = asyncio.create_task(self._beat()) if has_heartbeat else None
        try:
            await CertificateController(self.settings, self.api, WallClock()).look()
            await until(lambda: _ready(process, running, has_heartbeat), "the webhook is ready")
            await until(lambda: self._calls(process), "the API server calls it")
            yield process
        finally:
            stop.set()
            try:
                await running
            finally:
                if beating is not None:
                    beating.cancel()
                if await exists(self.api, path):  # `emergency-release` may have deleted it
                    await self.api.delete(path)

    async def _beat(self) -> None:
        settings = self.settings
        lease = OwnLease(self.api, settings.namespace, settings.heartbeat_lease, "test")
        beating = Heartbeat(lease, lambda: True)
        while True:
            await beating.beat()
            await asyncio.sleep(0.2)  # so that the webhook soon sees two

    async def _calls(self, process: WebhookProcess) -> bool:
        probe = self.job("probe", deadline="6h", run_now="true")
        await self.api.create(f"{self.jobs}?dryRun=All", json.dumps(probe).encode())
        counted = {"outcome": "run-now"}
        registry = process.metrics.registry
        return registry.get_sample_value("greensched_webhook_reviews_total", counted) is not None

    @asynccontextmanager
    async def controller(self, identity: str = "first") -> AsyncIterator["Running"]:
        """Run a controller; its webhook's configuration need not exist."""
        stop = asyncio.Event()
        settings = self.settings.model_copy(update={"identity": identity})
        process = ControllerProcess(settings, self.access, self.api, settings.clock)
        running = asyncio.create_task(process.run(stop))
        try:
            yield Running(process.metrics, stop, process.ready, running)
        finally:
            stop.set()
            await running

    async def publish(
        self, zone: str, carbon_g_per_kwh: Sequence[float], *, slot_s: float = 3600.0
    ) -> None:
        """Publish a zone's GridSignal with the given grams in each slot from now on."""
        now_s = time.time() // 900 * 900
        slots = [GridSlot(now_s + place * slot_s, grams, None)
                 for place, grams in enumerate(carbon_g_per_kwh)]  # fmt: skip
        end_s = now_s + len(slots) * slot_s
        forecast = ZoneForecast(zone, "", time.time(), "test", slots[0], tuple(slots), end_s)
        name = object_name(zone)
        if not await exists(self.api, f"{GRID_SIGNALS_PATH}/{name}"):
            await self.create(GRID_SIGNALS_PATH, {
                "apiVersion": f"{labels.GROUP}/{labels.VERSION}", "kind": "GridSignal",
                "metadata": {"name": name}, "spec": {"zone": zone},
            })  # fmt: skip
            self.signals.append(name)
        body = json.dumps({"status": to_status(forecast)}).encode()
        await self.api.patch(f"{GRID_SIGNALS_PATH}/{name}/status", body)

    async def offer_node(
        self, zone: str, cpu_cores: float = 16.0, power_model: str = ""
    ) -> tuple[str, ...]:
        """Create a node in a grid zone, simulated by kwok, and return its name."""
        group = EqualNodes(1, f"{zone.lower()}-{uuid.uuid4().hex[:4]}", cpu_cores, 2.0**36,
                          grid_zone=zone, power_model=power_model,
                          extra_labels={_PLACE: self.own})  # fmt: skip
        names = await create_nodes(self.api, [group])
        await wait_until_ready(self.api, names)
        self.nodes += names
        return tuple(names)

    @asynccontextmanager
    async def releaser(self) -> AsyncIterator[Releaser]:
        """Run a releaser."""
        stop = asyncio.Event()
        process = Releaser(self.settings, self.api, self.settings.clock)
        running = asyncio.create_task(process.run(stop))
        try:
            yield process
        finally:
            stop.set()
            await running


@dataclass
class Running:
    """A running controller, and the event that stops it."""

    metrics: ControllerMetrics
    stop: asyncio.Event
    ready: Callable[[], str]
    task: asyncio.Task[None]


async def _ready(process: WebhookProcess, running: asyncio.Task[None], has_heartbeat: bool) -> bool:
    if running.done():
        await running
    wanted = {""} if has_heartbeat else {"", f"waits for {SIGN_OF_LIFE}"}
    return process.ready() in wanted


def webhook_configuration(place: Place) -> dict[str, Any]:
    """Return the chart's configuration for a webhook on this machine."""
    rules = [
        {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"]},
        {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]},
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": place.settings.webhook_configuration},
        "webhooks": [
            {
                "name": "hold.greensched.io",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "failurePolicy": "Ignore",
                "timeoutSeconds": 2,
                "clientConfig": {"url": f"https://127.0.0.1:{place.settings.webhook_port}{MUTATE}"},
                "namespaceSelector": {
                    "matchLabels": {"kubernetes.io/metadata.name": place.namespace}
                },
                "rules": [{"operations": ["CREATE"], "scope": "Namespaced", **each}
                          for each in rules],
            }
        ],
    }  # fmt: skip


@pytest_asyncio.fixture
async def place(
    api: ApiClient, api_access: ApiAccess, namespace: str, crds: None, tmp_path: Path
) -> AsyncIterator[Place]:
    """Create the users' namespace of this test and one for its operator."""
    own = f"operator-{uuid.uuid4().hex[:6]}"
    await api.create("/api/v1/namespaces", json.dumps({"metadata": {"name": own}}).encode())
    settings = OperatorSettings(
        namespace=own,
        webhook_host="127.0.0.1",
        webhook_port=free_port(),
        webhook_hosts=["127.0.0.1"],
        webhook_configuration=own,
        health_host="127.0.0.1",
        health_port=0,
        releaser_grace_s=1.0,
        kueue=True,
        kueue_gated_by=True,
        ledger=str(tmp_path / "ledger.sqlite"),
        ledger_port=0,
    )
    made = Place(api, namespace, own, settings, api_access)
    budgets = {"metadata": {"name": settings.budgets_config_map}}
    await api.create(config_maps_path(own), json.dumps(budgets).encode())
    yield made
    await api.delete(f"/api/v1/namespaces/{own}")
    for name in made.signals:
        await api.delete(f"{GRID_SIGNALS_PATH}/{name}")
    await delete_nodes(api, made.nodes)


def _annotations(values: dict[str, str]) -> dict[str, str]:
    return {f"{labels.GROUP}/{name.replace('_', '-')}": value for name, value in values.items()}


def _pod_spec(scheduler: str, place: str) -> dict[str, Any]:
    """Return a pod that only the nodes of one place can take, not those of other tests."""
    return {
        "nodeSelector": {_PLACE: place},
        "schedulerName": scheduler,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "main",
                "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": "100m", "memory": "16Mi"}},
            }
        ],
    }
