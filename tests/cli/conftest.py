"""Held work on a real API server, stand-ins for extenders, and the command in its own process."""

import json
import os
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from greensched_core import labels
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import STRATEGIC_MERGE_PATCH, ApiClient
from greensched_core.signals.timestamps import format_timestamp
from greensched_operator.holding.acceptance import Acceptance, changed_status
from greensched_testbed.components import ControlPlaneOptions
from greensched_testbed.controlplane import ControlPlane
from tests.cli.forked_command import run_forked
from tests.cli.stand_in_server import answering

Run = Callable[..., subprocess.CompletedProcess[str]]
Replica = Callable[[dict[str, Any]], str]


@pytest.fixture
def greensched() -> Run:
    """Return a runner of `greensched` without the caller's own cluster and settings."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != "KUBECONFIG" and not name.startswith("GREENSCHED_")
    }

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return run_forked(arguments, {**inherited, **variables})

    return run


@pytest.fixture
def replica() -> Iterator[Replica]:
    """Return a function that serves JSON by path, else 404, and returns the address."""
    with ExitStack() as serving:

        def serve(answers: dict[str, Any]) -> str:
            bodies = {path: json.dumps(body).encode() for path, body in answers.items()}
            return serving.enter_context(answering(bodies.get))

        yield serve


@pytest.fixture
def decision() -> dict[str, Any]:
    """Return a decision as an extender reports it."""
    zones = [("ZZ-CLEAN", 50.0), ("ZZ-DIRTY", 500.0)]
    return {
        "pod": {
            "namespace": "default", "name": "web", "uid": "u", "cpuCores": 4.0,
            "memoryBytes": 2**30, "gpus": 0.0, "runtimeSeconds": 3600.0,
            "runtimeIsDefault": False, "faults": [],
        },
        "decidedAt": 1_800_000_000.0, "policy": "onnx", "bundle": "prior", "fallbackReason": None,
        "weights": {"cost": 1.0, "carbon": 1.0, "performance": 0.1},
        "weightsFrom": "GreenPolicy team/default",
        "why": "clean was the cheapest of 2.",
        "snapshotAgeSeconds": 0.1, "offered": 2, "unknownNodes": {"count": 0, "some": []},
        "zones": [
            {
                "zone": zone, "carbonGramsPerKwh": carbon, "carbonFrom": "grid-signal",
                "carbonAgeSeconds": 60.0, "pricePerMwh": 80.0, "priceFrom": "grid-signal",
                "priceAgeSeconds": 60.0, "currency": "EUR",
            }
            for zone, carbon in zones
        ],
        "expectedNode": "clean", "outcome": {"state": "bound", "node": "clean", "boundAt": 1.0},
        "candidates": [
            {
                "node": name, "zone": zone, "score": score, "relativeCost": relative,
                "powerWatts": 20.0, "runtimeSeconds": 3600.0, "energyJoules": 72_000.0,
                "carbonGrams": 0.02 * carbon, "cost": 0.0016, "currency": "EUR",
            }
            for (zone, carbon), name, score, relative in zip(
                zones, ("clean", "dirty"), (10, 0), (0.6, 1.4), strict=True
            )
        ],
    }  # fmt: skip


CRDS = Path(__file__).resolve().parents[2] / "deploy/helm/greensched/files/crds"
_CRD_PATH = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces"
_BINDINGS = "/apis/rbac.authorization.k8s.io/v1/namespaces"
HOUR_S = 3600.0
PATIENCE_S = 60.0
DECISION = {
    "why": "planned",
    "saving": 0.4321,
    "carbonChange": -0.75,
    "costChange": -0.5556,
    "carbonGramsAtArrival": 960.0,
    "zone": "ZZ-CLEAN",
    "carbonGramsPerKwh": [120.0, 480.0],
    "pricePerMwh": [40.0, 90.0],
    "runtime": "1h (annotation)",
    "policy": "GreenPolicy team/default",
}


def marks(now_s: float, **annotations: str) -> dict[str, str]:
    """Return annotations of planned held work: `latest_start` is greensched.io/latest-start."""
    usual = {
        "deadline": "6h",
        "runtime": "1h",
        "held_at": format_timestamp(round(now_s - HOUR_S)),
        "planned_start": format_timestamp(round(now_s + 2 * HOUR_S)),
        "latest_start": format_timestamp(round(now_s + 4 * HOUR_S)),
        "hold_reason": "carbon -75 %, cost -56 % against running now, 120 instead of 480 g/kWh",
        "decision": json.dumps(DECISION),
    }
    every = {**usual, **annotations}
    return {
        f"{labels.GROUP}/{name.replace('_', '-')}": text for name, text in every.items() if text
    }


@dataclass
class Users:
    """The users' namespace, one for the operator (which may be dead), and the command."""

    api: ApiClient
    run: Run
    kubeconfig: Path
    folder: Path
    namespace: str
    own: str
    now_s: float = field(default_factory=time.time)

    def greensched(self, *arguments: str, **variables: str) -> Any:
        """Run the command as administrator, for this operator."""
        verb, *rest = arguments
        return self.run(
            verb, *rest, "--install-namespace", self.own, "--kubeconfig", str(self.kubeconfig),
            **{"TZ": "UTC", **variables},
        )  # fmt: skip

    def status(self, *arguments: str, **variables: str) -> Any:
        """Run `greensched status` in the users' namespace."""
        return self.greensched("status", "-n", self.namespace, *arguments, **variables)

    def release(self, *arguments: str, **variables: str) -> Any:
        """Run `greensched release` in the users' namespace."""
        return self.greensched("release", "-n", self.namespace, *arguments, **variables)

    async def hold_job(self, name: str, **annotations: str) -> dict[str, Any]:
        """Create a held Job; "" leaves an annotation out."""
        body = {
            "metadata": {"name": name, "annotations": marks(self.now_s, **annotations)},
            "spec": {"suspend": True, "template": {"spec": _pod_spec("2")}},
        }
        return await self.create(f"/apis/batch/v1/namespaces/{self.namespace}/jobs", body)

    async def hold_pod(self, name: str, *gates: str, **annotations: str) -> dict[str, Any]:
        """Create a held pod, with further gates."""
        names = [{"name": each} for each in (labels.GATE, *gates)]
        body = {
            "metadata": {"name": name, "annotations": marks(self.now_s, **annotations)},
            "spec": {**_pod_spec("500m"), "schedulingGates": names},
        }
        return await self.create(f"/api/v1/namespaces/{self.namespace}/pods", body)

    async def job(self, name: str) -> dict[str, Any]:
        """Return a Job."""
        return await self.get(f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}")

    async def pod(self, name: str) -> dict[str, Any]:
        """Return a pod."""
        return await self.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    async def change_job(self, name: str, body: dict[str, Any]) -> None:
        """Patch a Job."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"
        await self.api.patch(path, json.dumps(body).encode(), STRATEGIC_MERGE_PATCH)

    async def lead(
        self, silent_s: float = 0.0, lease: str = "greensched-operator", lasts_s: int = 15
    ) -> None:
        """Create a Lease that was renewed `silent_s` ago."""
        renewed = format_timestamp(round(time.time() - silent_s))
        spec = {"holderIdentity": "leader-1", "leaseDurationSeconds": lasts_s,
                "renewTime": renewed.replace("Z", ".000000Z")}  # fmt: skip
        body = {"metadata": {"name": lease}, "spec": spec}
        await self.create(f"{_LEASES}/{self.own}/leases", body)

    async def policy(self, namespace: str, mode: str) -> None:
        """Create a namespace's default GreenPolicy."""
        path = f"/apis/{labels.GROUP}/{labels.VERSION}/namespaces/{namespace}"
        body = {
            "apiVersion": f"{labels.GROUP}/{labels.VERSION}", "kind": "GreenPolicy",
            "metadata": {"name": "default"}, "spec": {"mode": mode},
        }  # fmt: skip
        await self.create(f"{path}/{labels.GREEN_POLICIES}", body)

    async def refuse_policy(self, namespace: str, why: str) -> None:
        """Write into a GreenPolicy's status, as the operator does, why it is not followed."""
        path = f"/apis/{labels.GROUP}/{labels.VERSION}/namespaces/{namespace}"
        status = changed_status(None, 1, Acceptance(False, "BundleUnusable", why), self.now_s)
        body = json.dumps({"status": status}).encode()
        await self.api.patch(f"{path}/{labels.GREEN_POLICIES}/default/status", body)

    async def limited(self, role: str) -> Path:
        """Return the kubeconfig of a user with a cluster role only in the users' namespace."""
        name, where = f"{role}-user", f"/api/v1/namespaces/{self.namespace}/serviceaccounts"
        await self.create(where, {"metadata": {"name": name}})
        subject = {"kind": "ServiceAccount", "name": name, "namespace": self.namespace}
        group = "rbac.authorization.k8s.io"
        await self.create(f"{_BINDINGS}/{self.namespace}/rolebindings", {
            "metadata": {"name": name}, "subjects": [subject],
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        })  # fmt: skip
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = (await self.create(f"{where}/{name}/token", asked))["status"]["token"]
        config = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))
        for user in config["users"]:
            user["user"] = {"token": token}
        for context in config["contexts"]:
            context["context"]["namespace"] = self.namespace
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Create an object, and return it as stored."""
        made: dict[str, Any] = json.loads(await self.api.create(path, json.dumps(body).encode()))
        return made

    async def get(self, path: str) -> dict[str, Any]:
        """Return an object."""
        found: dict[str, Any] = json.loads(await self.api.get(path))
        return found


@pytest_asyncio.fixture
async def users(
    api: ApiClient, control_plane: ControlPlane, namespace: str, greensched: Run, tmp_path: Path,
    our_resources: None,
) -> AsyncIterator[Users]:  # fmt: skip
    """Create the users' namespace of this test and one for its operator."""
    own = f"operator-{uuid.uuid4().hex[:6]}"
    await api.create("/api/v1/namespaces", json.dumps({"metadata": {"name": own}}).encode())
    yield Users(api, greensched, control_plane.kubeconfig, tmp_path, namespace, own)
    await api.delete(f"/api/v1/namespaces/{own}")


@pytest_asyncio.fixture
async def our_resources(api: ApiClient) -> None:
    """Define our custom resources in the API server."""
    for file in sorted(CRDS.glob("*.yaml")):
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
        try:
            await api.create(_CRD_PATH, json.dumps(found).encode())
        except ApiUnavailable as fault:
            if fault.status != 409:
                raise
        plural = found["spec"]["names"]["plural"]
        await _until_served(api, f"/apis/{labels.GROUP}/{labels.VERSION}/{plural}")


async def _until_served(api: ApiClient, path: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            await api.get(path)
        except ApiUnavailable as fault:
            if fault.status not in (404, 429, 503) or time.monotonic() > deadline:
                raise
            continue
        return


@pytest.fixture(scope="module")
def bare_cluster() -> Any:
    """Run a control plane on which GreenSched was never installed."""
    with ControlPlane(ControlPlaneOptions(scheduler=False, kwok=False)) as running:
        yield running


def _pod_spec(cpu: str) -> dict[str, Any]:
    return {
        "schedulerName": labels.SCHEDULER_NAME,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": "main", "image": "registry.k8s.io/pause:3.10",
                "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}},
            }
        ],
    }  # fmt: skip
