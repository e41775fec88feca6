import asyncio
import os
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml
from aiohttp import web
from aiohttp.test_utils import TestServer

from greensched_cli.ledger.source import OPERATOR
from greensched_cli.reading.replicas import (
    EXTENDER,
    ROLE,
    ReplicaAnswer,
    Whereabouts,
    ask_replicas,
    faults_of,
    port_of,
)
from greensched_core import labels
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_testbed.binaries import control_plane_programs
from greensched_testbed.chart import chart_folder

Run = Callable[..., Any]
AWAY = """
apiVersion: v1
kind: Config
current-context: away
clusters: [{name: away, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: away, context: {cluster: away, user: nobody}}]
users: [{name: nobody, user: {}}]
"""


# How a replica behaves, by its name; `whole` answers.
HEAD = b"HTTP/1.1 404 Not Found\r\nContent-Length: 14\r\n\r\n"
SAID = {
    "whole": HEAD + b'{"error":"no"}',
    "cut-off": HEAD + b'{"error',
    "no-json": HEAD + b'{"error":"no"\n',
    "no-http": b"SSH-2.0-OpenSSH_9.2\r\n",
    "frozen": b"",
}


async def _pods(request: web.Request) -> web.Response:
    asked = request.match_info["namespace"]
    if asked.isdecimal():
        return web.json_response({"message": "no"}, status=int(asked))
    if asked == "page":
        return web.Response(text="<html>")
    return (
        pods_in("greensched", *SAID, "closed", "forbidden")
        if asked == "greensched"
        else pods_in("")
    )


def pods_in(namespace: str, *names: str) -> web.Response:
    metas = [{"name": name, "namespace": namespace} for name in names]
    return web.json_response({"items": [{"metadata": each} for each in metas]})


async def _forward(request: web.Request) -> web.StreamResponse:
    name = request.match_info["pod"]
    if name == "forbidden":
        return web.json_response({"message": "no"}, status=403)
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    for channel in (0, 1):
        await socket.send_bytes(
            bytes([channel]) + int(request.query["ports"]).to_bytes(2, "little")
        )
    if name == "closed":
        await socket.send_bytes(b"\x01" + b"connection refused")
        return socket
    request_seen = await socket.receive_bytes()
    assert request_seen.startswith(b"\x00GET /v1/nodes HTTP/1.1\r\n")
    for byte in SAID[name]:
        await socket.send_bytes(bytes([0, byte]))
    if name == "frozen":
        await socket.receive()
    return socket


@pytest_asyncio.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[str]:
    """The kubeconfig of a stand-in for an API server."""
    api = web.Application()
    api.router.add_get("/api/v1/namespaces/{namespace}/pods", _pods)
    api.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/portforward", _forward)
    async with TestServer(api) as serving:
        path = tmp_path / "here"
        path.write_text(AWAY.replace("127.0.0.1:1", f"127.0.0.1:{serving.port}"))
        yield str(path)


async def asked(kubeconfig: str, namespace: str | None = "greensched") -> list[ReplicaAnswer]:
    where = Whereabouts(None, kubeconfig, None, namespace, None)
    hurried = replace(EXTENDER, patience_s=0.3)
    return await asyncio.to_thread(ask_replicas, "/v1/nodes", where, hurried)


async def test_each_replica_is_reported_and_none_holds_the_others_up(cluster: str) -> None:
    answers = {each.replica: each for each in await asked(cluster)}
    assert (answers["whole"].status, answers["whole"].body) == (404, {"error": "no"})
    faults = {name: each.fault for name, each in answers.items() if each.status == 0}
    assert faults["frozen"] == "port-forward: no answer within 0.3 s"
    assert faults["cut-off"].startswith("port-forward: the port-forward ended: CLOSE")
    assert "delimiter" in faults["no-json"]
    assert "the answer over the port-forward is not HTTP" in faults["no-http"]
    assert faults["closed"] == "port-forward: the port-forward failed: connection refused"
    assert faults["forbidden"].startswith("you may not forward ports of pods in namespace green")
    assert set(faults) == set(answers) - {"whole"}


@pytest.mark.parametrize(
    ("namespace", "told"),
    [
        pytest.param("403", "you may not list pods in namespace 403. The chart's Role", id="403"),
        pytest.param("401", "does not accept your login (401)", id="401"),
        pytest.param("500", "listing extender pods: GET ", id="500"),
        pytest.param("page", "the answer is not a list of pods", id="no-list"),
        pytest.param("empty", "no extender pod runs in namespace empty", id="nobody"),
    ],
)
async def test_who_cannot_be_listed_is_reported_with_the_reason(
    cluster: str, namespace: str, told: str
) -> None:
    with pytest.raises(ApiUnavailable, match=re.escape(told)):
        await asked(cluster, namespace)


@pytest_asyncio.fixture
async def elsewhere(tmp_path: Path) -> AsyncIterator[Callable[..., Any]]:
    """Starts a stand-in for an API server whose extender may run in other namespaces.

    It answers `usual` for the pods of `greensched`, `anywhere` for those of all namespaces.
    """
    servers: list[TestServer] = []

    async def start(usual: web.Response, anywhere: web.Response) -> str:
        async def usual_pods(_: web.Request) -> web.Response:
            return usual

        async def all_pods(_: web.Request) -> web.Response:
            return anywhere

        api = web.Application()
        api.router.add_get("/api/v1/namespaces/greensched/pods", usual_pods)
        api.router.add_get("/api/v1/pods", all_pods)
        api.router.add_get("/api/v1/namespaces/green/pods/{pod}/portforward", _forward)
        server = TestServer(api)
        await server.start_server()
        servers.append(server)
        path = tmp_path / "here"
        path.write_text(AWAY.replace("127.0.0.1:1", f"127.0.0.1:{server.port}"))
        return str(path)

    yield start
    for each in servers:
        await each.close()


def forbidden() -> web.Response:
    return web.json_response({"message": "no"}, status=403)


@pytest.mark.parametrize("usual", [pods_in, forbidden], ids=["no-pods", "no-right"])
async def test_an_extender_in_another_namespace_is_found(elsewhere: Any, usual: Any) -> None:
    here = usual("") if usual is pods_in else usual()
    answers = await asked(await elsewhere(here, pods_in("green", "whole")), namespace=None)
    assert [(each.replica, each.status) for each in answers] == [("whole", 404)]


@pytest.mark.parametrize(
    ("usual", "anywhere", "message"),
    [
        pytest.param(
            pods_in("green"), forbidden(), "no extender pod runs in namespace greensched; see",
            id="no-right-elsewhere",
        ),
        pytest.param(
            forbidden(), forbidden(), "--user=YOU. If GreenSched is installed in another namesp",
            id="no-right-at-all",
        ),
        pytest.param(
            pods_in("green"), web.json_response({"items": [
                {"metadata": {"name": "a", "namespace": "blue"}},
                {"metadata": {"name": "b", "namespace": "green"}},
            ]}), "extender pods run in the namespaces blue, green: name one of them with --install",
            id="two-installations",
        ),
    ],
)  # fmt: skip
async def test_an_installation_that_cannot_be_chosen_must_be_named(
    elsewhere: Any, usual: web.Response, anywhere: web.Response, message: str
) -> None:
    with pytest.raises(ApiUnavailable, match=re.escape(message)):
        await asked(await elsewhere(usual, anywhere), namespace=None)


@pytest.mark.parametrize("verb", ["nodes", "status"])
def test_an_api_server_that_is_away_is_one_line_with_its_address(
    greensched: Run, tmp_path: Path, verb: str
) -> None:
    (tmp_path / "config").write_text(AWAY)
    done = greensched(verb, "--kubeconfig", str(tmp_path / "config"))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "the API server http://127.0.0.1:1 does not answer: " in line


def test_replicas_with_the_same_fault_are_named_in_one_sentence() -> None:
    answers = [
        ReplicaAnswer("a", 0, {"error": "no"}),
        ReplicaAnswer("b", 404, {"error": "none"}),
        ReplicaAnswer("c", 0, {"error": "no"}),
        ReplicaAnswer("d", 200, {}),
    ]
    assert faults_of(answers) == ["a, c: no", "b: HTTP 404: none"]
    assert faults_of(answers, fine=(200, 404)) == ["a, c: no"]


def test_no_kubeconfig_is_reported_with_what_to_do(greensched: Run, tmp_path: Path) -> None:
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
def test_an_annotation_that_is_no_port_is_reported(text: str) -> None:
    with pytest.raises(ValueError, match="is not a port"):
        port_of({labels.EXPLAIN_PORT: text}, None)


def rendered(release: str, value: str) -> list[dict[str, Any]]:
    """Return the chart's objects for a release of this name and a value, written NAME=VALUE."""
    helm = control_plane_programs() / "helm"
    text = subprocess.run(
        [helm, "template", release, chart_folder(), "--set", value],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    return [each for each in yaml.safe_load_all(text) if each]


@pytest.mark.helm
@pytest.mark.parametrize(
    "value", ["nameOverride=eco", "fullnameOverride=eco", "extender.replicas=3"]
)
def test_the_selectors_find_the_charts_pods_whatever_they_are_called(value: str) -> None:
    templates = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in rendered("any", value)
        if each["kind"] == "Deployment"
    }
    assert len(templates) == 5
    for component, ending in ((EXTENDER, "extender"), (OPERATOR, "controller")):
        chosen = dict(part.split("=") for part in component.selector.split(","))
        found = [name for name, worn in templates.items() if chosen.items() <= worn.items()]
        assert len(found) == 1 and found[0].endswith(ending)


@pytest.mark.helm
@pytest.mark.parametrize("value", ["fullnameOverride=eco", "operator.enabled=false"])
def test_the_role_that_messages_name_is_the_charts_whatever_the_release_is_called(
    value: str,
) -> None:
    roles = {each["metadata"]["name"] for each in rendered("gs", value) if each["kind"] == "Role"}
    assert ROLE in roles


def test_the_chart_is_reported_missing_where_there_is_no_checkout(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="only a checkout"):
        chart_folder(tmp_path)
