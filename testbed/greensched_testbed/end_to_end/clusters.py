"""A cluster under test, by kubeconfig alone, and what it can beyond Kubernetes' API."""

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
    """Images of real meters, which every node has, and what the nodes' counters count meanwhile."""

    scaphandre_image: str
    prometheus_image: str
    watts: dict[str, float]  # by node; to be changed at will


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a cluster has and lets a test do; a test that needs what is empty is skipped.

    kind: what it is, for reports.
    shell_image: an image with a shell, which every node has or can pull.
    extender_image, operator_image: ours, in the same way, with their tags.
    outlives_tests: whether somebody uses it afterwards, so that the chart is uninstalled.
    kubelet_metrics: whether the API server hands on to kubelets, as real ones do.
    restart_node: stops all of a node and starts it again.
    count_watts: has nodes' energy counters count the watts it is given, while it is entered; raises
        BuildFailed where a meter cannot be built.
    load_images: gives every node images, as archives.
    run_kueue: runs Kueue's controller while it is entered, where the cluster has none.
    """

    kind: str
    shell_image: str = ""
    extender_image: str = ""
    operator_image: str = ""
    outlives_tests: bool = False
    kubelet_metrics: bool = False
    restart_node: Callable[[str], None] | None = None
    count_watts: Callable[[Mapping[str, float]], AbstractContextManager[RealMeters]] | None = None
    load_images: Callable[[Iterable[Path]], None] | None = None
    run_kueue: Callable[[], AbstractContextManager[None]] | None = None


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """How tests talk to a cluster."""

    kubeconfig: Path
    kubectl_program: Path
    helm_program: Path
    home: Path  # for what kubectl and Helm keep
    can: Capabilities

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what kubectl prints; raise CommandFailed when it fails."""
        return self._command(self.kubectl_program, arguments, stdin)

    def helm(self, *arguments: str) -> str:
        """Return what Helm prints; raise CommandFailed when it fails."""
        return self._command(self.helm_program, arguments, None)

    def apply(self, *objects: Mapping[str, Any], namespace: str = "default") -> None:
        """Create or change objects; raise CommandFailed when one is refused."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--namespace", namespace, "-f", "-", stdin=json.dumps(listed))

    def get(self, kind: str, name: str, namespace: str = "default") -> dict[str, Any]:
        """Return an object; raise CommandFailed when there is none."""
        text = self.kubectl("get", kind, name, "--namespace", namespace, "--output", "json")
        found: dict[str, Any] = json.loads(text)
        return found

    def list(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the objects of a namespace that a selector takes."""
        told = ("--namespace", namespace, "--selector", selector, "--output", "json")
        found: list[dict[str, Any]] = json.loads(self.kubectl("get", kind, *told))["items"]
        return found

    def has(self, kind: str, name: str, namespace: str = "default") -> bool:
        """Say whether there is an object of that name."""
        told = ("--namespace", namespace, "--ignore-not-found", "--output", "name")
        return bool(self.kubectl("get", kind, name, *told).strip())

    def said(self, kind: str, name: str, namespace: str) -> dict[str, str]:
        """Return an object's annotations of ours, without their common prefix."""
        found = self.get(kind, name, namespace)["metadata"].get("annotations", {})
        ours = f"{labels.GROUP}/"
        return {key[len(ours) :]: text for key, text in found.items() if key.startswith(ours)}

    def is_held(self, job: str, namespace: str) -> bool:
        """Return whether a Job is suspended by us, by this release or by 0.1.0."""
        found = self.get("job", job, namespace)
        annotations = found["metadata"].get("annotations", {})
        is_ours = labels.LATEST_START in annotations or labels.HOLD_UNTIL in annotations
        return is_ours and found["spec"].get("suspend") is True

    def is_complete(self, job: str, namespace: str) -> bool:
        """Say whether a Job has ended well."""
        found = self.get("job", job, namespace)["status"].get("conditions", ())
        return any(each["type"] == "Complete" and each["status"] == "True" for each in found)

    def wait_until(self, claim: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
        """Wait until a claim holds; raise NotReady when it does not in time."""
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
        """Return what kubectl, Helm and `greensched` see: this cluster and no user's settings."""
        helm = {f"HELM_{part}_HOME": str(self.home / part) for part in ("CACHE", "CONFIG", "DATA")}
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            **helm,
        }
