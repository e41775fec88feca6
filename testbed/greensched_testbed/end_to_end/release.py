"""Installs the chart by Helm, and reads the release's state for tests."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greensched_testbed.end_to_end.clusters import ClusterAccess
from greensched_testbed.errors import CommandFailed

NAME = "greensched"
NAMESPACE = "greensched"
DEFINITIONS = tuple(
    f"{plural}.greensched.io" for plural in ("gridsignals", "greenpolicies", "jobpowerprofiles")
)
# Arguments of kubectl that remove, after an uninstall, what stays on purpose (docs/install.md).
REMOVALS = (
    ("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=120s"),
    ("delete", "customresourcedefinitions", *DEFINITIONS, "--ignore-not-found", "--timeout=120s"),
)
DEPLOYMENTS = ("extender", "scheduler", "controller", "webhook", "releaser")
_TIMEOUT = "180s"
_ASKS_ITSELF = (
    "from urllib.request import urlopen;"
    "print(urlopen('http://127.0.0.1:8888/metrics').read().decode())"
)
_SCORED = 'greensched_extender_requests_total{outcome="ok",verb="prioritize"}'
_BOUND_SCORED = 'greensched_extender_bindings_total{scored="yes"}'
_BOUND_UNSCORED = 'greensched_extender_bindings_total{scored="no"}'
# Held work then starts late by seconds instead of minutes, which keeps tests short.
_QUICKER = ("operator.settings.releaseJitterS=0", "operator.settings.releaserGraceS=2")


@dataclass(frozen=True, slots=True)
class ChartRelease:
    """The chart, installed on a cluster."""

    cluster: ClusterAccess
    chart: Path
    install_s: float  # from calling Helm until all pods are Ready

    def upgrade(self, *values: str) -> None:
        """Change values (`key=value`), and wait until all is Ready; raise CommandFailed."""
        install(self.cluster, self.chart, *values)

    def scale(self, component: str, replicas: int) -> None:
        """Scale a component, and wait until it has exactly that many pods."""
        deployment = f"deployment/{NAME}-{component}"
        options = ("--namespace", NAMESPACE)
        self.cluster.kubectl("scale", deployment, f"--replicas={replicas}", *options)
        self.cluster.kubectl("rollout", "status", deployment, "--timeout=90s", *options)
        self.cluster.wait_until(lambda: len(self.pods(component)) == replicas, deployment)

    def wait_until_ready(self, timeout_s: float = 120.0) -> None:
        """Wait until all pods of all Deployments are Ready; raise CommandFailed."""
        for component in DEPLOYMENTS:
            options = ("--namespace", NAMESPACE, f"--timeout={timeout_s:.0f}s")
            self.cluster.kubectl("rollout", "status", f"deployment/{NAME}-{component}", *options)

    def pods(self, component: str) -> list[dict[str, Any]]:
        """Return a component's pods, including terminating ones."""
        selector = f"app.kubernetes.io/component={component},app.kubernetes.io/name={NAME}"
        return self.cluster.list("pods", NAMESPACE, selector)

    def is_off(self, node: str, *components: str) -> bool:
        """Return whether all pods of some components are Ready on other nodes."""
        pods = [each for component in components for each in self.pods(component)]
        return all(is_ready(each) and each["spec"]["nodeName"] != node for each in pods)

    def scored(self) -> float:
        """Return the number of pods scored by the running extenders."""
        return sum(each[_SCORED] for each in self._extenders_metrics())

    def unscored(self) -> float:
        """Return the number of our pods that were bound and that no running extender has scored.

        Each extender sees all bindings since it started.
        """
        counted = self._extenders_metrics()
        bound = max(each[_BOUND_SCORED] + each[_BOUND_UNSCORED] for each in counted)
        return bound - sum(each[_BOUND_SCORED] for each in counted)

    def _extenders_metrics(self) -> list[dict[str, float]]:
        """Return the samples of each running extender, by name with labels."""
        # From inside the pod: the NetworkPolicy blocks the API server's proxy.
        asked = ("--namespace", NAMESPACE, "--", "python", "-c", _ASKS_ITSELF)
        texts = [
            self.cluster.kubectl("exec", pod["metadata"]["name"], *asked)
            for pod in self.pods("extender")
        ]
        return [samples(text) for text in texts]

    def restarts(self) -> dict[str, int]:
        """Return the restarts of the release's containers, by pod."""
        return {
            pod["metadata"]["name"]: sum(each["restartCount"] for each in _containers(pod))
            for pod in self._all_pods()
        }

    def killed_for_memory(self) -> list[str]:
        """Return the pods of which a container's last run was killed by its memory limit."""
        return [
            pod["metadata"]["name"]
            for pod in self._all_pods()
            for each in _containers(pod)
            for state in (each.get("state", {}), each.get("lastState", {}))
            if state.get("terminated", {}).get("reason") == "OOMKilled"
        ]

    def _all_pods(self) -> list[dict[str, Any]]:
        return self.cluster.list("pods", NAMESPACE, f"app.kubernetes.io/part-of={NAME}")


def samples(exposition: str) -> dict[str, float]:
    """Return the samples of a metrics page, by name with labels."""
    lines = [line for line in exposition.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def is_ready(pod: dict[str, Any]) -> bool:
    """Return whether a pod is Ready."""
    conditions: list[dict[str, str]] = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _containers(pod: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pod["status"].get("containerStatuses", [])
    return found


def install(cluster: ClusterAccess, chart: Path, *values: str) -> ChartRelease:
    """Install or upgrade the chart in mode enforce, and wait until all of it is Ready.

    Raises CommandFailed with Helm's output otherwise.
    """
    settings = [
        part for each in ("policy.mode=enforce", *_QUICKER, *values) for part in ("--set", each)
    ]
    return _upgrade(cluster, chart, "--install", "--create-namespace", *settings)


def upgrade(cluster: ClusterAccess, chart: Path) -> ChartRelease:
    """Upgrade a release to another chart and images as docs/install.md says; see `install`."""
    return _upgrade(cluster, chart, "--reset-then-reuse-values")


def _images(cluster: ClusterAccess) -> list[str]:
    named = (("extender", cluster.can.extender_image), ("operator", cluster.can.operator_image))
    return [
        f"{part}.image.{key}={value}"
        for part, image in named
        for key, value in zip(("repository", "tag"), image.rsplit(":", 1), strict=True)
    ]


def _upgrade(cluster: ClusterAccess, chart: Path, *options: str) -> ChartRelease:
    began = time.monotonic()
    cluster.helm(
        *("upgrade", NAME, str(chart), "--namespace", NAMESPACE),
        *("--wait", "--timeout", _TIMEOUT, *options),
        *(part for each in _images(cluster) for part in ("--set-string", each)),  # a tag of digits
    )
    return ChartRelease(cluster, chart, time.monotonic() - began)


def installed(cluster: ClusterAccess) -> str:
    """Describe the parts of GreenSched that a cluster has; "" if it has none.

    Raises CommandFailed if the cluster does not answer.
    """
    webhooks = cluster.list(
        "mutatingwebhookconfigurations", NAMESPACE, f"app.kubernetes.io/part-of={NAME}"
    )
    for each in webhooks:
        return f"the MutatingWebhookConfiguration {each['metadata']['name']}"
    try:
        cluster.helm("status", NAME, "--namespace", NAMESPACE)
    except CommandFailed:  # Helm's only way to report that there is none
        return _remains(cluster)
    return f"the release {NAME} in the namespace {NAMESPACE}"


def _remains(cluster: ClusterAccess) -> str:
    """Say what an uninstall left; the tests would overwrite it and remove it at the end."""
    for kind, names in (("CustomResourceDefinition", DEFINITIONS), ("Namespace", (NAMESPACE,))):
        for name in names:
            if cluster.has(kind, name):
                return f"the {kind} {name}"
    return ""


def uninstall(cluster: ClusterAccess) -> str:
    """Uninstall the release as a user does, if it exists, and return Helm's output."""
    options = ("--namespace", NAMESPACE, "--timeout", "300s", "--ignore-not-found")
    return cluster.helm("uninstall", NAME, *options)


def remove_all(cluster: ClusterAccess) -> None:
    """Uninstall the release and remove what Helm keeps on purpose; raise CommandFailed."""
    uninstall(cluster)
    for arguments in REMOVALS:
        cluster.kubectl(*arguments)
