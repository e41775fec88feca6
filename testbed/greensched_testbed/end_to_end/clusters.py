"""A cluster under test, given by its kubeconfig, and its capabilities beyond Kubernetes' API."""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greensched_core import labels
from greensched_testbed.commands import run_command
from greensched_testbed.errors import NotReady

_COMMAND_TIMEOUT_S = 400.0
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class RealMeters:
    """Images of real meters, which every node has, and the watts that the nodes' counters count."""

    scaphandre_image: str
    prometheus_image: str
    watts: dict[str, float]  # by node; may be changed at any time


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a cluster has and supports; a test that needs an empty field is skipped.

    kind: description of the cluster, for reports.
    shell_image: an image with a shell, which every node has or can pull.
    extender_image, operator_image: our images with tags, likewise.
    kubelet_metrics: whether the API server proxies to kubelets, as real clusters do.
    restart_node: stops and restarts a node with all its processes.
    count_watts: context manager in which nodes' energy counters count the given watts; raises
        BuildFailed if a meter cannot be built, CannotBuildHere without cargo or a C compiler.
    load_images: loads image archives on every node.
    run_kueue: context manager that runs Kueue's controller, for clusters without it.
    """

    kind: str
    shell_image: str = ""
    extender_image: str = ""
    operator_image: str = ""
    kubelet_metrics: bool = False
    restart_node: Callable[[str], None] | None = None
    count_watts: Callable[[Mapping[str, float]], AbstractContextManager[RealMeters]] | None = None
    load_images: Callable[[Iterable[Path]], None] | None = None
    run_kueue: Callable[[], AbstractContextManager[None]] | None = None


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The access of tests to a cluster."""

    kubeconfig: Path
    kubectl_program: Path
    helm_program: Path
    home: Path  # for files of kubectl and Helm
    can: Capabilities
    # Of a user's cluster: the user's own environment, for login plugins of the kubeconfig.
    users_environment: Mapping[str, str] | None = None

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl and return its output; raise CommandFailed if it fails."""
        return self._command(self.kubectl_program, arguments, stdin)

    def helm(self, *arguments: str) -> str:
        """Run Helm and return its output; raise CommandFailed if it fails."""
        return self._command(self.helm_program, arguments, None)

    def apply(self, *objects: Mapping[str, Any], namespace: str = "default") -> None:
        """Create or change objects; raise CommandFailed if one is refused."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--namespace", namespace, "-f", "-", stdin=json.dumps(listed))

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """Return an object; raise CommandFailed if it does not exist."""
        text = self.kubectl("get", kind, name, "--namespace", namespace, "--output", "json")
        found: dict[str, Any] = json.loads(text)
        return found

    def list(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the objects of a namespace that match a selector."""
        options = ("--namespace", namespace, "--selector", selector, "--output", "json")
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, *options))["items"]
        return found

    def has(self, kind: str, name: str, namespace: str = "default") -> bool:
        """Return whether an object exists."""
        options = ("--namespace", namespace, "--ignore-not-found", "--output", "name")
        return bool(self.kubectl("get", kind, name, *options).strip())

    def said(self, kind: str, name: str, namespace: str) -> dict[str, str]:
        """Return an object's GreenSched annotations, without their common prefix."""
        found = self.get(kind, name, namespace)["metadata"].get("annotations", {})
        prefix = f"{labels.GROUP}/"
        return {key[len(prefix) :]: text for key, text in found.items() if key.startswith(prefix)}

    def is_held(self, job: str, namespace: str) -> bool:
        """Return whether GreenSched holds a Job; this release or 0.1.0."""
        found = self.get("job", job, namespace)
        annotations = found["metadata"].get("annotations", {})
        is_ours = labels.LATEST_START in annotations or labels.LATEST_START_OF_010 in annotations
        return is_ours and found["spec"].get("suspend") is True

    def is_complete(self, job: str, namespace: str) -> bool:
        """Return whether a Job has completed."""
        found = self.get("job", job, namespace)["status"].get("conditions", ())
        return any(each["type"] == "Complete" and each["status"] == "True" for each in found)

    def wait_until(self, claim: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
        """Wait until a claim is true; raise NotReady if it is not in time."""
        deadline = time.monotonic() + timeout_s
        while not claim():
            if time.monotonic() > deadline:
                raise NotReady(f"did not happen within {timeout_s:.0f} s: {what}")
            time.sleep(_POLL_S)

    def _command(self, program: Path, arguments: tuple[str, ...], stdin: str | None) -> str:
        return run_command(
            program,
            *arguments,
            environment=self.environment(),
            stdin=stdin,
            timeout_s=_COMMAND_TIMEOUT_S,
        )

    def environment(self) -> dict[str, str]:
        """Return the environment of kubectl, Helm and `greensched`, without settings of Helm.

        Settings such as HELM_KUBECONTEXT would lead Helm to another cluster than kubectl.
        """
        helm = {f"HELM_{part}_HOME": str(self.home / part) for part in ("CACHE", "CONFIG", "DATA")}
        kept = self.users_environment
        if kept is None:
            kept = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.home)}
        others = {name: text for name, text in kept.items() if not name.startswith("HELM_")}
        return {**others, "KUBECONFIG": str(self.kubeconfig), **helm}
