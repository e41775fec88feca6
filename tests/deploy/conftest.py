"""The chart, and the real Helm, kubectl and kube-scheduler to test it with."""

import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from yaml.constructor import ConstructorError

from greensched_testbed.binaries import control_plane_programs
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.ports import free_port
from greensched_testbed.processes import ManagedProcess

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "greensched"

RELEASE = "greensched"
PREFIX = "GREENSCHED_OPERATOR_"
PATIENCE_S = 60.0  # for what takes a second or two on an idle machine


class StrictLoader(yaml.SafeLoader):
    """Refuses duplicate keys in a map, of which other loaders take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the map; raise ConstructorError for a duplicate key."""
        keys = [key.value for key, _ in node.value]
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise ConstructorError(None, None, f"twice: {', '.join(twice)}", node.start_mark)
        return super().construct_mapping(node, deep)


Run = Callable[..., subprocess.CompletedProcess[str]]
Render = Callable[..., list[dict[str, Any]]]


def runner(program: Path, environment: dict[str, str]) -> Run:
    """Return a function that runs the program; CHART among the arguments is the chart's folder."""

    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(program), *(str(CHART) if part == "CHART" else part for part in arguments)]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, env=environment
        )

    return run


def helm_environment(home: Path, kubeconfig: Path) -> dict[str, str]:
    """Return an environment without the user's own Helm and Kubernetes settings."""
    folders = {f"HELM_{kind}_HOME": str(home / kind) for kind in ("CACHE", "CONFIG", "DATA")}
    path = os.environ["PATH"]
    return {"PATH": path, "HOME": str(home), "KUBECONFIG": str(kubeconfig), **folders}


@pytest.fixture(scope="session")
def values() -> dict[str, Any]:
    """Return values.yaml, parsed."""
    parsed: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return parsed


@pytest.fixture(scope="session")
def helm_offline(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a runner of the real Helm, without a cluster."""
    home = tmp_path_factory.mktemp("helm")
    return runner(control_plane_programs() / "helm", helm_environment(home, home / "no-kubeconfig"))


@pytest.fixture(scope="session")
def kube_scheduler() -> Path:
    """Return the path of the real kube-scheduler."""
    return control_plane_programs() / "kube-scheduler"


@pytest.fixture(scope="session")
def render_with_tests(helm_offline: Run) -> Render:
    """Return a function that renders the chart with further `helm template` arguments.

    A duplicate key in a map fails, as in kustomize.
    """

    def run(*arguments: str) -> list[dict[str, Any]]:
        template = ["template", "greensched", "CHART", "--namespace", "greensched"]
        result = helm_offline(*template, *arguments)
        assert result.returncode == 0, result.stderr
        return [each for each in yaml.load_all(result.stdout, StrictLoader) if each]

    return run


@pytest.fixture(scope="session")
def render(render_with_tests: Render) -> Render:
    """Return a function that renders the chart without the objects of `helm test`."""
    return partial(render_with_tests, "--skip-tests")


@pytest.fixture(scope="session")
def refusal(helm_offline: Run) -> Callable[..., str]:
    """Return a function that returns Helm's refusal of values; it fails if Helm accepts them."""

    def run(*arguments: str) -> str:
        result = helm_offline("template", "greensched", "CHART", *arguments)
        assert result.returncode != 0, "Helm took the values"
        return result.stderr

    return run


@pytest.fixture
def kubectl(control_plane: ControlPlane, tmp_path: Path) -> Run:
    """Return a runner of kubectl on the real control plane."""
    environment = helm_environment(tmp_path, control_plane.kubeconfig)
    return runner(control_plane.programs / "kubectl", environment)


@pytest.fixture
def helm(control_plane: ControlPlane, tmp_path: Path) -> Run:
    """Return a runner of Helm on the real control plane."""
    environment = helm_environment(tmp_path, control_plane.kubeconfig)
    return runner(control_plane.programs / "helm", environment)


@dataclass
class Installation:
    """The chart without pods; its processes run here, with the chart's settings and accounts."""

    plane: ControlPlane
    helm: Run
    kubectl: Run
    namespace: str
    users: str
    webhook_port: int

    def upgrade(self, *arguments: str, chart: str = "CHART") -> str:
        """Install or upgrade with mode enforce; no pods: the processes run here.

        Returns Helm's output.
        """
        replicas = [
            part
            for process in ("controller", "webhook", "releaser")
            for part in ("--set", f"operator.{process}.replicas=0")
        ]
        result = self.helm(
            *["upgrade", "--install", RELEASE, chart, "--namespace", self.namespace],
            *["--create-namespace", *replicas, "--set", "policy.mode=enforce"],
            *["--set", f"operator.webhook.url=https://127.0.0.1:{self.webhook_port}/mutate"],
            *["--set", "extender.settings.zoneMap.berlin=ZZ-INST", *arguments],
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def environment(self, process: str, health_port: int) -> dict[str, str]:
        """Return the environment of a pod of the chart."""
        shown = self.get("configmap", "greensched-operator")["data"]
        folder = self.plane.folder / "policy.json"
        policy = self.get("configmap", "greensched-operator-policy")["data"]["policy.json"]
        folder.write_text(policy)
        account = self.plane.service_account_dir(self.namespace, f"greensched-{process}")
        return {
            **shown,
            **self.plane.in_cluster_environment(),
            "PATH": str(Path(sys.executable).parent),
            f"{PREFIX}DEFAULT_POLICY_FILE": str(folder),
            f"{PREFIX}SERVICEACCOUNT_DIR": str(account),
            f"{PREFIX}WEBHOOK_HOST": "127.0.0.1",
            f"{PREFIX}WEBHOOK_PORT": str(self.webhook_port),
            f"{PREFIX}HEALTH_HOST": "127.0.0.1",
            f"{PREFIX}HEALTH_PORT": str(health_port),
            f"{PREFIX}LEDGER_PORT": "0",  # any free port: other tests use the chart's
        }

    def start(self, process: str, health_port: int = 0) -> ManagedProcess:
        """Start a process as the chart's account, and wait until it is ready."""
        port = health_port or free_port()
        running = self.plane.processes.start(
            f"installed-{process}",
            [sys.executable, "-m", "greensched_operator", process],
            self.environment(process, port),
        )
        running.wait_until(lambda: _is_ready(port), "/readyz", PATIENCE_S)
        return running

    def run_to_its_end(self, process: str) -> subprocess.CompletedProcess[str]:
        """Run a process as the chart's account until it ends."""
        return subprocess.run(
            [sys.executable, "-m", "greensched_operator", process],
            env=self.environment(process, 0),
            capture_output=True,
            text=True,
            check=False,
        )

    def refusals(self, running: ManagedProcess) -> list[str]:
        """Return log lines about rights that our accounts lack; other releases share the file."""
        lines = running.log_file.read_text().splitlines()
        return [each for each in lines if "forbidden" in each.lower() and self.namespace in each]

    def wait_until(self, claim: Callable[[], bool], what: str) -> None:
        """Wait until a claim about the cluster is true; fail if it is not in time."""
        deadline = time.monotonic() + PATIENCE_S
        while not claim():
            assert time.monotonic() < deadline, f"not within {PATIENCE_S:.0f} s: {what}"
            time.sleep(0.1)  # another process changes it

    def stop(self) -> None:
        """Stop all processes."""
        for process in ("controller", "webhook", "releaser"):
            if f"installed-{process}" in self.plane.processes:
                self.plane.stop(f"installed-{process}")

    def get(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        """Return an object."""
        shown = self.kubectl("get", kind, name, "-n", namespace or self.namespace, "-o", "json")
        assert shown.returncode == 0, shown.stderr
        found: dict[str, Any] = json.loads(shown.stdout)
        return found

    def ca_bundles(self) -> list[str]:
        """Return the CA bundle of each webhook."""
        found = self.get("mutatingwebhookconfiguration", RELEASE)["webhooks"]
        return [each["clientConfig"].get("caBundle", "") for each in found]

    def job(self, name: str, scheduler: str = "greensched", **marks: str) -> str:
        """Return a Job; `run_now` means the annotation greensched.io/run-now."""
        annotations = {
            f"greensched.io/{key.replace('_', '-')}": text for key, text in marks.items()
        }
        resources = {"requests": {"cpu": "1"}}
        container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
        pod = {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container]}
        meta = {"name": name, "namespace": self.users, "annotations": annotations}
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta}
        return json.dumps({**body, "spec": {"template": {"spec": pod}}})


def _is_ready(port: int) -> bool:
    try:
        reply = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=2.0, trust_env=False)
    except httpx.HTTPError:
        return False
    return reply.status_code == 200


@pytest.fixture
def installation(control_plane: ControlPlane, helm: Run, kubectl: Run) -> Iterator[Installation]:
    """Install the chart and create a namespace of users; remove both afterwards."""
    own, users = (f"{word}-{uuid.uuid4().hex[:6]}" for word in ("installed", "users"))
    made = Installation(control_plane, helm, kubectl, own, users, free_port())
    made.upgrade("--take-ownership")
    kubectl("create", "namespace", users)
    yield made
    made.stop()
    helm("uninstall", RELEASE, "--namespace", own, "--ignore-not-found", "--no-hooks")
    kubectl("delete", "namespace", users, own, "--ignore-not-found", "--wait=false")
    kubectl("delete", "gridsignal", "zz-inst", "node/inst", "--ignore-not-found")
