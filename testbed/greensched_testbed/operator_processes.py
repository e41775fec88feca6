"""Runs the operator's processes beside a control plane, on a clock that may be accelerated.

They use the chart's resources, service accounts, webhook configuration and settings.
"""

import json
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx

from greensched_core.clock import Clock, ScaledClock, WallClock
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.webhook.webhook_app import MUTATE
from greensched_testbed.chart import RELEASE, chart_folder, given_by_chart
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.ports import free_port
from greensched_testbed.processes import ManagedProcess

OPERATOR_NAMESPACE = "greensched"
LEDGER_PORT = 8890  # on the controller's pods, the chart's default
_READY_TIMEOUT_S = 60.0
_RELEASES_PER_SECOND = float(OperatorSettings.model_fields["releases_per_second"].default)
_KINDS = ("controller", "webhook", "releaser")


@dataclass(frozen=True, slots=True)
class FastClock:
    """A clock `rate` times as fast as the wall clock: it shows `shows_s` at wall time `since_s`."""

    rate: float = 1.0
    since_s: float = 0.0
    shows_s: float = 0.0

    @property
    def clock(self) -> Clock:
        """The clock."""
        if self.rate == 1.0:
            return WallClock()
        return ScaledClock(self.since_s, self.shows_s, self.rate)

    @property
    def settings(self) -> dict[str, str]:
        """The operator's settings for the same clock."""
        if self.rate == 1.0:
            return {}
        return {
            "CLOCK_RATE": str(self.rate),
            "CLOCK_ANCHOR_WALL_S": repr(self.since_s),
            "CLOCK_ANCHOR_SIM_S": repr(self.shows_s),
        }


class OperatorProcesses:
    """Controller replicas, a webhook and a releaser, addressed by name."""

    def __init__(self, plane: ControlPlane, pace: FastClock, **settings: object) -> None:
        """`settings`: settings of all operator processes, such as `replan_every_s=60`."""
        self._plane = plane
        self._pace = pace
        self._settings = {name.upper(): str(value) for name, value in settings.items()}
        self._webhook_port = free_port()
        self._health_ports: dict[str, int] = {}
        self._ledger_ports: dict[str, int] = {}

    def install(self, *arguments: str) -> None:
        """Install the chart with 0 replicas: its processes run here, with its configuration.

        `arguments` go to Helm.
        """
        own = [f"operator.{kind}.replicas=0" for kind in _KINDS]
        # Callers that place pods start extender and scheduler by `GreenSchedProcesses`.
        own += ["extender.replicas=0", "scheduler.replicas=0", "scheduler.extenderUrl=http://none"]
        own += [f"operator.webhook.url={self.review_url()}"]
        self._plane.helm(
            "upgrade", "--install", RELEASE, str(chart_folder()), "--namespace", OPERATOR_NAMESPACE,
            "--create-namespace", *(part for each in own for part in ("--set", each)), *arguments,
        )  # fmt: skip
        for kind in ("greenpolicies", "jobpowerprofiles", "gridsignals"):
            self._plane.kubectl("wait", "--for=condition=Established", "--timeout=30s",
                                f"crd/{kind}.greensched.io")  # fmt: skip

    def start_all(self) -> None:
        """Start one process of each kind, and wait until the API server calls the webhook."""
        self.start("controller")
        self.start("webhook")
        self.start("releaser")

    def start(
        self,
        kind: str,
        name: str = "",
        own: Mapping[str, str] = MappingProxyType({}),
        *,
        is_waited_for: bool = True,
    ) -> ManagedProcess:
        """Start a `controller`, `webhook` or `releaser`, and wait until it is ready.

        `own`: settings of only this process, such as CLOCK_ANCHOR_SIM_S.
        """
        name = name or kind
        port = self._health_ports.setdefault(name, free_port())
        account = self._plane.service_account_dir(OPERATOR_NAMESPACE, f"{RELEASE}-{kind}")
        settings = {
            "SERVICEACCOUNT_DIR": str(account),
            "IDENTITY": name,
            "WEBHOOK_HOST": "127.0.0.1",
            "WEBHOOK_PORT": str(self._webhook_port),
            "HEALTH_HOST": "127.0.0.1",
            "HEALTH_PORT": str(port),
            "LEDGER": str(self._plane.folder / "ledger.sqlite"),
            "LEDGER_PORT": str(self.ledger_port(name)),
            # A second of the clock, over which starts are spread, may be shorter than one of ours.
            "RELEASES_PER_SECOND": str(_RELEASES_PER_SECOND * self._pace.rate),
            **self._pace.settings,
            **self._settings,
            **own,
        }
        process = self._plane.processes.start(
            f"operator-{name}",
            [sys.executable, "-m", "greensched_operator", kind],
            {
                **self._environment(),
                **{f"GREENSCHED_OPERATOR_{key}": value for key, value in settings.items()},
                **self._plane.in_cluster_environment(),
                "PATH": str(Path(sys.executable).parent),
                "TMPDIR": str(self._plane.folder),  # a killed webhook leaves its certificate there
            },
        )
        if is_waited_for:
            process.wait_until(lambda: self._is_ready(port), "/readyz", _READY_TIMEOUT_S)
        return process

    def ledger_port(self, name: str) -> int:
        """Return the port of a controller's ledger, which differs from the chart's."""
        return self._ledger_ports.setdefault(name, free_port())

    def stop(self, name: str) -> None:
        """Stop a process; safe to repeat."""
        self._plane.stop(f"operator-{name}")

    def restart(self, pace: FastClock) -> None:
        """Restart one process of each kind on another clock, with the chart's settings."""
        for kind in reversed(_KINDS):
            self.stop(kind)
        self._pace, self._settings = pace, {}
        self.start_all()

    def kill(self, name: str) -> None:
        """Kill a process, like a machine failure."""
        self._plane.processes[f"operator-{name}"].kill()

    def pid(self, name: str) -> int:
        """Return a process's id."""
        return self._plane.processes[f"operator-{name}"].pid

    def metrics(self, name: str) -> Mapping[str, float]:
        """Return a process's metric samples by name and labels, as in Prometheus' text format."""
        url = f"http://127.0.0.1:{self._health_ports[name]}/metrics"
        found: dict[str, float] = {}
        for line in httpx.get(url, timeout=10.0, trust_env=False).text.splitlines():
            if not line.startswith("#"):
                key, value = line.rsplit(" ", 1)
                found[key] = float(value)
        return found

    def review_url(self) -> str:
        """Return the URL to which the API server sends admission reviews."""
        return f"https://127.0.0.1:{self._webhook_port}{MUTATE}"

    def wait_until_called(self, namespace: str) -> None:
        """Wait until the API server calls the webhook for objects of a namespace."""
        probe: dict[str, Any] = {
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "probe", "namespace": namespace,
                         "annotations": {"greensched.io/deadline": "6h",
                                         "greensched.io/run-now": "true"}},
            "spec": {"template": {"spec": {
                "schedulerName": "greensched", "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]}}},
        }  # fmt: skip
        deadline = time.monotonic() + _READY_TIMEOUT_S
        while True:
            self._plane.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(probe))
            if any(key.startswith("greensched_webhook_reviews_total")
                   for key in self.metrics("webhook")):  # fmt: skip
                return
            if time.monotonic() > deadline:
                raise TimeoutError("the API server does not call the webhook")
            time.sleep(0.2)

    def _environment(self) -> dict[str, str]:
        """Return the settings of the chart's pods, and write the policy file that they mount."""
        policy = self._plane.folder / "policy.json"
        policy.write_text(given_by_chart(self._plane, f"{RELEASE}-operator-policy")["policy.json"])
        own = {"GREENSCHED_OPERATOR_DEFAULT_POLICY_FILE": str(policy)}
        return given_by_chart(self._plane, f"{RELEASE}-operator") | own

    def _is_ready(self, port: int) -> bool:
        try:
            reply = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=2.0, trust_env=False)
        except httpx.HTTPError:
            return False
        return reply.status_code == 200
