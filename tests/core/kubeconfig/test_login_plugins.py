import base64
import json
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from greensched_core.clock import ManualClock
from greensched_core.errors import BadInput
from greensched_core.kubeconfig.files import read_context
from greensched_core.kubeconfig.plugins import LoginPlugin
from greensched_core.signals.timestamps import format_timestamp

Write = Callable[..., Path]
API = "client.authentication.k8s.io/v1"
# Prints what `told` says, and what it was told itself, into files beside it.
PRINTS = """#!{python}
import os, pathlib, sys
beside = pathlib.Path(__file__).parent
beside.joinpath("asked").write_text(os.environ["KUBERNETES_EXEC_INFO"])
beside.joinpath("given").write_text(" ".join(sys.argv[1:]) + os.environ.get("OWN", ""))
with beside.joinpath("runs").open("a") as runs:
    runs.write("x")
print(beside.joinpath("printed").read_text())
"""


class Place:
    """A plugin beside a kubeconfig, and what it prints."""

    def __init__(self, write: Write, folder: Path) -> None:
        self._write = write
        self.folder = folder / "login"
        self.folder.mkdir()
        program = self.folder / "login"
        program.write_text(PRINTS.format(python=sys.executable))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.clock = ManualClock()

    def prints(self, status: Mapping[str, Any]) -> None:
        told = {"apiVersion": API, "kind": "ExecCredential", "status": status}
        (self.folder / "printed").write_text(json.dumps(told))

    def plugin(self, cluster: dict[str, Any] | None = None, **said: Any) -> LoginPlugin:
        told = {"apiVersion": API, "command": "./login", "interactiveMode": "Never", **said}
        path = self._write(user={"exec": told}, cluster=cluster, folder="login")
        return LoginPlugin(read_context(path, None), self.clock)

    def said(self, name: str) -> str:
        return (self.folder / name).read_text()


@pytest.fixture
def place(write: Write, tmp_path: Path) -> Place:
    return Place(write, tmp_path)


def test_its_token_counts_and_it_runs_once(place: Place) -> None:
    place.prints({"token": "t"})
    plugin = place.plugin(args=["--region", "x"], env=[{"name": "OWN", "value": " own"}])
    assert [plugin.token(), plugin.token()] == ["t", "t"]
    assert (place.said("runs"), place.said("given")) == ("x", "--region x own")


def test_a_token_that_is_about_to_end_is_asked_for_anew(place: Place) -> None:
    until = format_timestamp(round(place.clock.now()) + 3_600)
    place.prints({"token": "first", "expirationTimestamp": until})
    plugin = place.plugin()
    assert plugin.token() == "first"
    place.prints({"token": "second"})
    assert plugin.token() == "first"
    place.clock.advance(3_600.0 - 30.0)
    assert plugin.token() == "second"


def test_a_certificate_with_its_key_is_a_credential_too(place: Place) -> None:
    place.prints({"clientCertificateData": "cert", "clientKeyData": "key"})
    found = place.plugin().credential()
    assert (found.token, found.certificate) == (None, ("cert", "key"))


def test_it_hears_of_the_cluster_only_where_it_asks_for_that(place: Place) -> None:
    place.prints({"token": "t"})
    (place.folder / "ca.crt").write_text("authority")
    cluster = {
        "certificate-authority": "ca.crt",
        "extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"x": 1}}],
    }
    place.plugin(cluster).token()
    asked = json.loads(place.said("asked"))
    assert (asked["kind"], asked["apiVersion"]) == ("ExecCredential", API)
    assert asked["spec"] == {"interactive": False}
    place.plugin(cluster, provideClusterInfo=True).token()
    told = json.loads(place.said("asked"))["spec"]["cluster"]
    assert base64.b64decode(told["certificate-authority-data"]) == b"authority"
    assert (told["server"], told["config"]) == ("https://127.0.0.1:1", {"x": 1})


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param({"command": "sh", "args": ["-c", "echo expired >&2; exit 3"]},
                     "exec: process returned 3. expired. Log in again", id="fails"),
        pytest.param({"command": "echo", "args": ["hello"]}, "not an ExecCredential", id="no-json"),
        pytest.param({"command": "echo", "args": ["[]"]}, "not an ExecCredential", id="a-list"),
        pytest.param({"command": "echo", "args": ['{"status": {}}']},
                     "neither a token nor a certificate", id="empty"),
        pytest.param({"command": "echo",
                      "args": ['{"status": {"token": "t", "expirationTimestamp": "soon"}}']},
                     "expirationTimestamp: 'soon'", id="no-time"),
        pytest.param({"interactiveMode": "Always"}, "needs a terminal", id="asks-questions"),
        pytest.param({"env": ["OWN"]}, "an entry of env has no name", id="no-variable"),
    ],
)  # fmt: skip
def test_one_that_fails_is_reported_as_such(place: Place, said: dict[str, Any], told: str) -> None:
    place.prints({"token": "t"})
    with pytest.raises(BadInput, match="its login plugin failed: ") as raised:
        place.plugin(**said).token()
    assert told in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("said", "advice"),
    [({}, "Install it, or add its folder to the PATH"),
     ({"installHint": "Get it at the desk."}, "Get it at the desk.")],
)  # fmt: skip
def test_one_that_is_not_installed_is_to_be_installed(
    place: Place, said: dict[str, Any], advice: str
) -> None:
    with pytest.raises(BadInput) as raised:
        place.plugin(command="no-such-login", **said).token()
    why = "its login plugin 'no-such-login' cannot be started: No such file or directory. "
    assert str(raised.value).endswith(why + advice)


def test_one_without_a_command_is_reported(place: Place) -> None:
    with pytest.raises(BadInput, match="has no command"):
        place.plugin(command="")
