"""Runs Kueue's controller beside a control plane, with only the parts needed.

Its admission webhooks are not installed, so Jobs must be created suspended. Its CRDs are stored and
served only in their newest version, so that none are converted.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from greensched_testbed.binaries import kueue_crds, kueue_program
from greensched_testbed.certificates import Authority
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.ports import free_port

VERSION = "v1beta2"
_NAMESPACE = "kueue-system"
_SERVICE = "kueue-webhook-service"
_SECRET = "kueue-webhook-server-cert"
# Kueue writes its CA into the conversion webhooks of these CRDs, and needs them to start.
_CONVERTED = frozenset(
    {"localqueues", "clusterqueues", "workloads", "cohorts", "multikueueclusters"}
)
_READY_TIMEOUT_S = 120.0


@contextmanager
def running_kueue(plane: ControlPlane) -> Iterator[None]:
    """Run Kueue in a control plane; raises BuildFailed, ProcessDied or NotReady."""
    program = kueue_program()
    crds = [
        prepared_crd(yaml.safe_load(file.read_text())) for file in sorted(kueue_crds().glob("*"))
    ]
    _apply(plane, [*crds, *_surroundings()])
    names = [f"crd/{each['metadata']['name']}" for each in crds]
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", *names)
    port = free_port()
    folder = plane.folder / "kueue"
    pair = Authority(folder / "certificates").issue_server("tls", (f"{_SERVICE}.{_NAMESPACE}.svc",))
    (folder / "config.json").write_text(
        json.dumps(configuration(port, str(pair.certificate.parent)))
    )
    command: list[str | Path] = [
        program,
        f"--config={folder / 'config.json'}",
        f"--kubeconfig={plane.kubeconfig}",
    ]
    process = plane.processes.start("kueue", command, {"HOME": str(folder)})
    try:
        process.wait_until(
            lambda: _answers(f"http://127.0.0.1:{port}/readyz"), "Kueue", _READY_TIMEOUT_S
        )
        yield
    finally:
        plane.processes.stop("kueue")


def prepared_crd(crd: dict[str, Any]) -> dict[str, Any]:
    """Return a CRD of Kueue with only its newest version."""
    versions = [each for each in crd["spec"]["versions"] if each["name"] == VERSION]
    if not versions:
        return crd
    spec = {**crd["spec"], "versions": [{**versions[0], "storage": True}]}
    if spec["names"]["plural"] in _CONVERTED:
        service = {"name": _SERVICE, "namespace": _NAMESPACE, "path": "/convert"}
        webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
        spec["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return {**crd, "spec": spec}


def configuration(health_port: int, certificates: str) -> dict[str, Any]:
    """Return the controller's configuration: only Jobs, no metrics, no visibility server."""
    return {
        "apiVersion": f"config.kueue.x-k8s.io/{VERSION}",
        "kind": "Configuration",
        "namespace": _NAMESPACE,
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health_port}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": "127.0.0.1", "port": free_port(), "certDir": certificates},
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {
            "enable": True, "webhookServiceName": _SERVICE, "webhookSecretName": _SECRET,
        },
        "featureGates": {"VisibilityOnDemand": False},
        "integrations": {"frameworks": ["batch/job"]},
    }  # fmt: skip


def _surroundings() -> list[dict[str, Any]]:
    """Return the namespace, and the Secret into which Kueue writes its certificate."""
    metadata = {"name": _SECRET, "namespace": _NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata},
    ]


def _apply(plane: ControlPlane, objects: list[dict[str, Any]]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    # CRDs exceed the size limit of the annotation that client-side apply writes.
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2.0, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
