"""Login plugins of a kubeconfig (`users[].user.exec`): programs that print a credential.

The protocol is `ExecCredential` of client.authentication.k8s.io. A failed plugin raises
BadInput with its output; otherwise the API server would only refuse an anonymous user.
"""

import base64
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greensched_core.clock import Clock
from greensched_core.errors import BadInput
from greensched_core.kubeconfig.files import Context, KubeconfigEntry
from greensched_core.quoting import quoted
from greensched_core.signals.timestamps import parse_timestamp

_AHEAD_S = 60.0  # a credential is renewed this long before it expires
_EXTENSION = "client.authentication.k8s.io/exec"
# Cluster fields that a plugin may get (`provideClusterInfo`).
_CLUSTER_FIELDS = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "proxy-url",
    "disable-compression",
)


@dataclass(frozen=True, slots=True)
class Credential:
    """The credential that a plugin printed."""

    token: str | None
    certificate: tuple[str, str] | None  # certificate and key, both PEM
    until_s: float  # seconds since the epoch; infinity: no expiry is given


class LoginPlugin:
    """The login plugin of a context's user; runs again when its credential is about to expire."""

    def __init__(self, context: Context, clock: Clock) -> None:
        self._context = context
        self._clock = clock
        config = context.user.fields["exec"]
        if not isinstance(config, dict) or not config.get("command"):
            raise BadInput(f"kubeconfig {context.source}: its login plugin (exec) has no command")
        self._config: Mapping[str, Any] = config
        self._last: Credential | None = None

    def credential(self) -> Credential:
        """Return the current credential; raise BadInput with the plugin's output if it fails."""
        if self._last is None or self._last.until_s - _AHEAD_S <= self._clock.now():
            try:
                self._last = self._run()
            except (OSError, ValueError) as fault:
                reason = " ".join(str(fault).split())
                raise BadInput(
                    f"kubeconfig {self._context.source}: its login plugin failed: {reason}. "
                    "Log in again, or run the plugin by hand to see its output"
                ) from fault
        return self._last

    def token(self) -> str | None:
        """Return the current token; raise BadInput as `credential` does."""
        return self.credential().token

    def _run(self) -> Credential:
        """Run the plugin; raise ValueError if it fails or prints no credential."""
        mode = str(self._config.get("interactiveMode") or "IfAvailable")
        is_interactive = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not is_interactive:
            raise ValueError("exec: it needs a terminal to ask questions, and there is none")
        environment = {**os.environ, **self._variables(is_interactive)}
        try:
            done = subprocess.run(
                [self._program(environment), *map(str, self._config.get("args") or ())],
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if is_interactive else subprocess.PIPE,
                env=environment,
                check=False,
            )
        except OSError as fault:
            hint = self._config.get("installHint") or "Install it, or add its folder to the PATH"
            why = f"{quoted(str(self._config['command']))} cannot be started: {fault.strerror}"
            raise BadInput(
                f"kubeconfig {self._context.source}: its login plugin {why}. {hint}"
            ) from fault
        if done.returncode:
            output = (done.stderr or b"").decode(errors="replace").strip()
            raise ValueError(f"exec: process returned {done.returncode}. {output}".rstrip(". "))
        return _credential(done.stdout)

    def _program(self, environment: Mapping[str, str]) -> str:
        command = str(self._config["command"])
        if os.path.dirname(command):
            return str(self._context.user.folder / command)
        return shutil.which(command, path=environment.get("PATH")) or command

    def _variables(self, is_interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": is_interactive}
        if self._config.get("provideClusterInfo"):
            spec["cluster"] = _cluster_info(self._context.cluster)
        info = {
            "apiVersion": self._config.get("apiVersion"),
            "kind": "ExecCredential",
            "spec": spec,
        }
        listed = self._config.get("env") or ()
        if not all(isinstance(each, dict) and "name" in each for each in listed):
            raise ValueError("exec: an entry of env has no name")
        own = {str(each["name"]): str(each.get("value", "")) for each in listed}
        return {**own, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _cluster_info(cluster: KubeconfigEntry) -> dict[str, Any]:
    """Return the cluster info for a plugin, with embedded authority and plugin extension."""
    info = {key: cluster.fields[key] for key in _CLUSTER_FIELDS if key in cluster.fields}
    authority = cluster.text("certificate-authority-data")
    if not authority and (path := cluster.path("certificate-authority")):
        authority = base64.b64encode(path.read_bytes()).decode()
    if authority:
        info["certificate-authority-data"] = authority
    for each in cluster.fields.get("extensions") or ():
        if isinstance(each, dict) and each.get("name") == _EXTENSION:
            info["config"] = each.get("extension")
    return info


def _credential(printed: bytes) -> Credential:
    """Return the credential in a plugin's output; raise ValueError if there is none."""
    try:
        status = json.loads(printed)["status"]
        token, until = status.get("token"), status.get("expirationTimestamp")
        pair = status.get("clientCertificateData"), status.get("clientKeyData")
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ValueError("exec: its output is not an ExecCredential with a status") from fault
    has_pair = all(isinstance(each, str) and each for each in pair)
    if not token and not has_pair:
        raise ValueError("exec: it printed neither a token nor a certificate with its key")
    try:
        until_s = parse_timestamp(str(until)) if until else math.inf
    except BadInput as fault:
        raise ValueError(f"exec: expirationTimestamp: {fault}") from fault
    return Credential(str(token) if token else None, pair if has_pair else None, until_s)
