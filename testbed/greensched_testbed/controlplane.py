"""Runs a real Kubernetes control plane on this machine, in a scratch folder on free ports."""

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx

from greensched_core.errors import BadInput
from greensched_core.kubernetes_api import ApiAccess
from greensched_testbed.binaries import compile_kernel, control_plane_programs
from greensched_testbed.certificates import Authority, KeyPair
from greensched_testbed.commands import run_command
from greensched_testbed.components import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    SCHEDULER,
    ControlPlaneOptions,
    draw,
    scheduler_arguments,
)
from greensched_testbed.credentials import (
    certificate_access,
    write_service_account_dir,
    write_token_kubeconfig,
)
from greensched_testbed.errors import NotReady
from greensched_testbed.ports import free_port
from greensched_testbed.processes import ManagedProcess, Processes
from greensched_testbed.scratch import new_scratch_folder

_READY_TIMEOUT_S = 90.0
_TOKEN_LIFETIME = "24h"
_COMMAND_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class SchedulerProcess:
    """An additional kube-scheduler and the URL of its metrics."""

    name: str
    process: ManagedProcess
    url: str  # /healthz and /metrics need no credentials; the certificate is self-signed


class ControlPlane:
    """Context manager: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok.

    On exit it stops everything and removes the folder, also after an exception. Raises ProcessDied
    or NotReady if a program does not start, BuildFailed if one cannot be built.
    """

    def __init__(
        self,
        options: ControlPlaneOptions | None = None,
        *,
        folder: Path | None = None,
        programs: Path | None = None,
        outlives_us: bool = False,
    ) -> None:
        self.options = options or ControlPlaneOptions()
        self.programs = programs or control_plane_programs()
        compile_kernel()
        self._owns_folder = folder is None
        self.folder = folder or new_scratch_folder()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.processes = Processes(self.folder / "logs", outlive_us=outlives_us)
        self._blueprint = draw(self.programs, self.folder, self.options)
        self._probe = httpx.Client(verify=self.access.verify, timeout=2.0, trust_env=False)
        self.start_s = 0.0  # seconds from start to a default service account

    def __enter__(self) -> Self:
        self.start_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Return the API server's address."""
        return self._blueprint.url

    @property
    def ca_file(self) -> Path:
        """Return the authority's certificate file."""
        return self.authority.certificate_file

    @property
    def authority(self) -> Authority:
        """Return the authority that signs certificates of the API server, nodes and users."""
        return self._blueprint.authority

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self._blueprint.admin_kubeconfig

    @property
    def client_certificate(self) -> KeyPair:
        """Return the administrator's certificate and key."""
        return self._blueprint.admin

    @property
    def access(self) -> ApiAccess:
        """Return the administrator's access, for our API client."""
        return certificate_access(self.url, self.ca_file, self.client_certificate)

    def start_all(self) -> None:
        """Start everything, in order; if a start fails, stop what was started."""
        began = time.monotonic()
        try:
            self.start(ETCD)
            self.start(API_SERVER)
            self.start(CONTROLLER_MANAGER)
            if self.options.scheduler:
                self.start(SCHEDULER)
            if self.options.kwok:
                self.start(KWOK)
            self.processes[CONTROLLER_MANAGER].wait_until(
                lambda: self._answers("/api/v1/namespaces/default/serviceaccounts/default"),
                "the default service account",
                _READY_TIMEOUT_S,
            )
        except BaseException:
            self.close()
            raise
        self.start_s = time.monotonic() - began

    def close(self) -> None:
        """Stop everything and remove the scratch folder; safe to repeat."""
        try:
            self.processes.stop_all()
        finally:
            self._probe.close()
            if self._owns_folder:
                shutil.rmtree(self.folder, ignore_errors=True)

    def let_go(self) -> None:
        """Leave everything running and stop managing it; needs `outlives_us`."""
        self.processes.let_go()
        self._probe.close()

    def start(self, name: str) -> None:
        """Start one component; for kube-apiserver, wait until it is ready."""
        process = self.processes.start(name, self._blueprint.command(name), self._environment())
        if name == API_SERVER:
            # Other components exit if they start before its bootstrap RBAC exists.
            process.wait_until(lambda: self._answers("/readyz"), "/readyz", _READY_TIMEOUT_S)

    def stop(self, name: str) -> None:
        """Stop one component, or a scheduler that `start_scheduler` started."""
        self.processes.stop(name)

    def restart(self, name: str) -> None:
        """Stop and start one component, with the same ports and data."""
        self.stop(name)
        self.start(name)

    def start_scheduler(
        self, name: str, config_text: str, kubeconfig: Path | None = None
    ) -> SchedulerProcess:
        """Start an additional kube-scheduler with a configuration, as the user of `kubeconfig`.

        This sets only clientConnection.kubeconfig in it. Returns once the scheduler is healthy.
        """
        identity = kubeconfig or self._blueprint.scheduler_kubeconfig
        port = free_port()
        arguments = scheduler_arguments(self.folder / f"{name}.yaml", config_text, identity, port)
        process = self.processes.start(
            name, [self.programs / SCHEDULER, *arguments], self._environment()
        )
        url = f"https://127.0.0.1:{port}"
        with httpx.Client(verify=False, timeout=2.0, trust_env=False) as probe:
            try:
                process.wait_until(
                    lambda: _answers(probe, f"{url}/healthz"), "/healthz", _READY_TIMEOUT_S
                )
            except BaseException:
                self.processes.stop(name)
                raise
        return SchedulerProcess(name, process, url)

    def forward_pod_port(self, namespace: str, port: int, target_port: int) -> None:
        """Have kwok connect a port-forward to `port` of the namespace's pods to a local port."""
        folder = self._blueprint.kwok_folder
        folder.mkdir(exist_ok=True)
        forward = {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterPortForward",
            "metadata": {"name": f"{namespace}-{port}"},
            "spec": {
                "selector": {"matchNamespaces": [namespace]},
                "forwards": [
                    {"ports": [port], "target": {"address": "127.0.0.1", "port": target_port}}
                ],
            },
        }
        (folder / f"{namespace}-{port}.yaml").write_text(json.dumps(forward))
        self.restart(KWOK)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl as administrator and return its output; raise CommandFailed if it fails."""
        options = ("--kubeconfig", str(self.kubeconfig))
        return self._command("kubectl", (*options, *arguments), stdin)

    def helm(self, *arguments: str, stdin: str | None = None) -> str:
        """Run helm as administrator and return its output; raise CommandFailed if it fails."""
        options = ("--kubeconfig", str(self.kubeconfig))
        return self._command("helm", (*arguments, *options), stdin)

    def service_account_token(self, namespace: str, name: str) -> str:
        """Return a token of a service account, from a TokenRequest, valid for 24 hours."""
        duration = f"--duration={_TOKEN_LIFETIME}"
        return self.kubectl("create", "token", name, "-n", namespace, duration).strip()

    def service_account_dir(self, namespace: str, name: str) -> Path:
        """Return a folder like the one that kubelet mounts into pods of that service account."""
        folder = self.folder / "serviceaccounts" / namespace / name
        token = self.service_account_token(namespace, name)
        return write_service_account_dir(folder, self.ca_file, namespace, token)

    def kubeconfig_for_service_account(self, namespace: str, name: str) -> Path:
        """Return a kubeconfig of a service account."""
        path = self.folder / "serviceaccounts" / f"{namespace}.{name}.kubeconfig"
        token = self.service_account_token(namespace, name)
        return write_token_kubeconfig(path, self.url, self.ca_file, token)

    def in_cluster_environment(self) -> dict[str, str]:
        """Return the variables by which a pod finds the API server."""
        return {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self._blueprint.api_port),
        }

    def create_namespace(self, name: str, timeout_s: float = 30.0) -> None:
        """Create a namespace and wait for its default service account, which every pod needs."""
        if "/" in name:
            raise BadInput(f"{name!r} is not a namespace name")
        self.kubectl("create", "namespace", name)
        deadline = time.monotonic() + timeout_s
        while not self._answers(f"/api/v1/namespaces/{name}/serviceaccounts/default"):
            if time.monotonic() > deadline:
                raise NotReady(f"namespace {name} has no default service account yet")
            time.sleep(0.05)

    def version(self) -> str:
        """Return the server's version, for example v1.36.3."""
        reply = self._probe.get(f"{self.url}/version")
        return str(json.loads(reply.content)["gitVersion"])

    def _answers(self, path: str) -> bool:
        return _answers(self._probe, f"{self.url}{path}")

    def _command(self, program: str, arguments: tuple[str, ...], stdin: str | None) -> str:
        return run_command(
            self.programs / program,
            *arguments,
            environment=self._environment(),
            stdin=stdin,
            timeout_s=_COMMAND_TIMEOUT_S,
        )

    def _environment(self) -> dict[str, str]:
        """Return the programs' environment, without the user's Kubernetes and Helm settings."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder / "home"),
            "KUBECONFIG": str(self.kubeconfig),
            "HELM_CACHE_HOME": str(self.folder / "helm/cache"),
            "HELM_CONFIG_HOME": str(self.folder / "helm/config"),
            "HELM_DATA_HOME": str(self.folder / "helm/data"),
        }


def _answers(probe: httpx.Client, url: str) -> bool:
    try:
        return probe.get(url).status_code == 200
    except httpx.HTTPError:
        return False
