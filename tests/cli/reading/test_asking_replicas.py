import inspect
import os
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.stream import ws_client

from greensched_cli.ledger.ledger_source import OPERATOR
from greensched_cli.reading.replicas import EXTENDER, get_over, port_of, within, without_proxies
from greensched_core import labels
from greensched_core.errors import BadInput
from greensched_testbed.binaries import control_plane_programs
from greensched_testbed.demo.cluster import chart_folder

Run = Callable[..., Any]
AWAY = """
apiVersion: v1
kind: Config
current-context: away
clusters: [{name: away, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: away, context: {cluster: away, user: nobody}}]
users: [{name: nobody, user: {}}]
"""


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_frozen_replica_holds_nobody_up(ends: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(TimeoutError):
        get_over(ends[0], "/v1/nodes", patience_s=0.05)


def test_a_replica_that_freezes_within_its_answer_holds_nobody_up(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ends[1].sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    with pytest.raises(TimeoutError):
        get_over(ends[0], "/v1/nodes", patience_s=0.05)


@pytest.mark.parametrize(("body", "status"), [
    pytest.param(b'{"error":"no"}', 404, id="whole"),
    pytest.param(b'{"error":"no"', None, id="cut-off"),
])  # fmt: skip
def test_an_answer_comes_over_the_connection(
    ends: tuple[socket.socket, socket.socket], body: bytes, status: int | None
) -> None:
    head = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(body)
    ends[1].sendall(head + body)
    if status is None:
        with pytest.raises(ValueError, match="delimiter"):
            get_over(ends[0], "/v1/nodes")
    else:
        assert get_over(ends[0], "/v1/nodes") == (status, {"error": "no"})
    assert ends[1].recv(65_536).startswith(b"GET /v1/nodes HTTP/1.1")


def test_who_takes_too_long_is_given_up() -> None:
    never = threading.Event()
    with pytest.raises(TimeoutError, match=r"within 0\.05 s"):
        within(0.05, never.wait).result()


def test_who_answers_in_time_is_heard_and_who_fails_is_told_of() -> None:
    assert within(10.0, lambda: 1).result() == 1
    with pytest.raises(ValueError, match="invalid literal"):
        within(10.0, lambda: int("x")).result()


def test_an_api_server_that_is_away_is_one_line(greensched: Run, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(AWAY)
    done = greensched("nodes", "--kubeconfig", str(tmp_path / "config"))
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1 and "listing extender pods" in done.stderr


def test_no_kubeconfig_is_told_with_what_to_do(greensched: Run, tmp_path: Path) -> None:
    done = greensched("nodes", HOME=str(tmp_path))
    told = "greensched: no kubeconfig: set KUBECONFIG or pass --kubeconfig\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


def test_a_kubeconfig_that_does_not_exist_is_named(greensched: Run, tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    for done in (
        greensched("nodes", "--kubeconfig", absent),
        greensched("nodes", KUBECONFIG=absent),
    ):
        assert (done.returncode, done.stdout) == (2, "")
        assert f"kubeconfig {absent}" in done.stderr and "does not exist" in done.stderr


def test_of_several_kubeconfigs_one_is_enough(greensched: Run, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(AWAY)
    done = greensched("nodes", KUBECONFIG=f"{tmp_path / 'absent'}{os.pathsep}{tmp_path / 'config'}")
    assert "listing extender pods" in done.stderr


@pytest.mark.parametrize("text", ["", "[]", "{", "clusters: 3", "\0"])
def test_a_file_that_is_no_kubeconfig_is_one_line(
    greensched: Run, tmp_path: Path, text: str
) -> None:
    (tmp_path / "config").write_text(text)
    done = greensched("nodes", "--kubeconfig", str(tmp_path / "config"))
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert f"kubeconfig {tmp_path / 'config'}: " in done.stderr


@pytest.mark.parametrize(("annotations", "given", "port"), [
    pytest.param(None, None, 8889, id="nothing-said"),
    pytest.param({"other": "1"}, None, 8889, id="others-said"),
    pytest.param({labels.EXPLAIN_PORT: "9000"}, None, 9000, id="the-pod-says"),
    pytest.param({labels.EXPLAIN_PORT: "9000"}, 9001, 9001, id="the-user-knows-better"),
])  # fmt: skip
def test_the_port_is_the_one_given_else_the_pods_else_the_default(
    annotations: dict[str, str] | None, given: int | None, port: int
) -> None:
    assert port_of(annotations, given) == port


@pytest.mark.parametrize("text", ["", "0", "65536", "http", "-1", "٣"])
def test_an_annotation_that_is_no_port_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="is no port"):
        port_of({labels.EXPLAIN_PORT: text}, None)


@pytest.mark.helm
@pytest.mark.parametrize(
    "value", ["nameOverride=eco", "fullnameOverride=eco", "extender.replicas=3"]
)
def test_the_selectors_find_the_charts_pods_whatever_they_are_called(value: str) -> None:
    helm = control_plane_programs() / "helm"
    text = subprocess.run(
        [helm, "template", "any", chart_folder(), "--set", value],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    templates = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in yaml.safe_load_all(text)
        if each and each["kind"] == "Deployment"
    }
    assert len(templates) == 5
    for component, ending in ((EXTENDER, "extender"), (OPERATOR, "controller")):
        chosen = dict(part.split("=") for part in component.selector.split(","))
        found = [name for name, worn in templates.items() if chosen.items() <= worn.items()]
        assert len(found) == 1 and found[0].endswith(ending)


def test_the_chart_is_told_to_be_missing_where_there_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="only a checkout"):
        chart_folder(tmp_path)


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        pytest.param("Kubernetes port forward proxy: 8889", False, id="of-a-proxy"),
        pytest.param("any other", True, id="of-another-thread"),
    ],
)
def test_a_proxy_that_meets_a_closed_connection_prints_no_traceback(
    name: str, is_told: bool
) -> None:
    told: list[Any] = []

    def fail() -> None:
        raise ssl.SSLEOFError

    before, threading.excepthook = threading.excepthook, without_proxies(told.append)
    try:
        thread = threading.Thread(target=fail, name=name)
        thread.start()
        thread.join()
    finally:
        threading.excepthook = before
    assert bool(told) is is_told


def test_the_kubernetes_package_still_calls_its_proxies_so() -> None:
    source = inspect.getsource(ws_client.PortForward)
    assert "Kubernetes port forward proxy" in source
