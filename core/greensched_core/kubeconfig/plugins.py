"""Login plugins of a kubeconfig (`users[].user.exec`): programs that print a credential.

The protocol is `ExecCredential` of client.authentication.k8s.io. A plugin that fails is told, with
what it printed: without a login the API server would refuse an anonymous user instead.
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
from greensched_core.signals.timestamps import parse_timestamp

_AHEAD_S = 60.0  # a credential is renewed so long before it expires
_EXTENSION = "client.authentication.k8s.io/exec"
# Of a cluster, what a plugin may be told (`provideClusterInfo`).
_TOLD = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "proxy-url",
    "disable-compression",
)


@dataclass(frozen=True, slots=True)
class Credential:
    """What a plugin printed."""

    token: str | None
    certificate: tuple[str, str] | None  # and its key, both PEM
    until_s: float  # seconds since the epoch; infinity: it tells of no end


class LoginPlugin:
    """The login plugin of a context's user; it runs again when its credential is about to end."""

    def __init__(self, context: Context, clock: Clock) -> None:
        self._context = context
        self._clock = clock
        said = context.user.said["exec"]
        if not isinstance(said, dict) or not said.get("command"):
            raise BadInput(f"kubeconfig {context.source}: its login plugin (exec) has no command")
        self._said: Mapping[str, Any] = said
        self._last: Credential | None = None

    def credential(self) -> Credential:
        """Return what counts now; raise BadInput, with what the plugin printed, when it fails."""
        if self._last is None or self._last.until_s - _AHEAD_S <= self._clock.now():
            try:
                self._last = self._printed()
            except (OSError, ValueError) as fault:
                told = " ".join(str(fault).split())
                raise BadInput(
                    f"kubeconfig {self._context.source}: its login plugin failed: {told}. "
                    "Log in again, or run the plugin by itself to see what it prints"
                ) from fault
        return self._last

    def token(self) -> str | None:
        """Return the token that counts now; raise BadInput as `credential` does."""
        return self.credential().token

    def _printed(self) -> Credential:
        """Run the plugin; raise ValueError where it fails, or prints no credential."""
        mode = str(self._said.get("interactiveMode") or "IfAvailable")
        is_interactive = mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not is_interactive:
            raise ValueError("exec: it needs a terminal to ask questions, and there is none")
        environment = {**os.environ, **self._variables(is_interactive)}
        try:
            done = subprocess.run(
                [self._program(environment), *map(str, self._said.get("args") or ())],
                stdin=None if is_interactive else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if is_interactive else subprocess.PIPE,
                env=environment,
                check=False,
            )
        except OSError as fault:
            hint = str(self._said.get("installHint") or "")
            raise ValueError(f"exec: {fault}. {hint}".rstrip(". ")) from fault
        if done.returncode:
            said = (done.stderr or b"").decode(errors="replace").strip()
            raise ValueError(f"exec: process returned {done.returncode}. {said}".rstrip(". "))
        return _credential(done.stdout)

    def _program(self, environment: Mapping[str, str]) -> str:
        command = str(self._said["command"])
        if os.path.dirname(command):
            return str(self._context.user.folder / command)
        return shutil.which(command, path=environment.get("PATH")) or command

    def _variables(self, is_interactive: bool) -> dict[str, str]:
        spec: dict[str, Any] = {"interactive": is_interactive}
        if self._said.get("provideClusterInfo"):
            spec["cluster"] = _told_of(self._context.cluster)
        info = {
            "apiVersion": self._said.get("apiVersion"),
            "kind": "ExecCredential",
            "spec": spec,
        }
        listed = self._said.get("env") or ()
        if not all(isinstance(each, dict) and "name" in each for each in listed):
            raise ValueError("exec: an entry of env has no name")
        own = {str(each["name"]): str(each.get("value", "")) for each in listed}
        return {**own, "KUBERNETES_EXEC_INFO": json.dumps(info)}


def _told_of(cluster: KubeconfigEntry) -> dict[str, Any]:
    """Return a cluster as plugins read it: the authority within, and what is meant for them."""
    told = {key: cluster.said[key] for key in _TOLD if key in cluster.said}
    authority = cluster.text("certificate-authority-data")
    if not authority and (path := cluster.path("certificate-authority")):
        authority = base64.b64encode(path.read_bytes()).decode()
    if authority:
        told["certificate-authority-data"] = authority
    for each in cluster.said.get("extensions") or ():
        if isinstance(each, dict) and each.get("name") == _EXTENSION:
            told["config"] = each.get("extension")
    return told


def _credential(printed: bytes) -> Credential:
    """Return the credential in what a plugin printed; raise ValueError where there is none."""
    try:
        status = json.loads(printed)["status"]
        token, until = status.get("token"), status.get("expirationTimestamp")
        pair = status.get("clientCertificateData"), status.get("clientKeyData")
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise ValueError("exec: what it printed is not an ExecCredential with a status") from fault
    has_pair = all(isinstance(each, str) and each for each in pair)
    if not token and not has_pair:
        raise ValueError("exec: it printed neither a token nor a certificate with its key")
    try:
        until_s = parse_timestamp(str(until)) if until else math.inf
    except BadInput as fault:
        raise ValueError(f"exec: expirationTimestamp: {fault}") from fault
    return Credential(str(token) if token else None, pair if has_pair else None, until_s)
