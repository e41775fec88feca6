"""Port-forwards to extenders, through a stand-in for the API server.

The stand-in is held to what Kubernetes' own Python client expects of the protocol.
"""

import asyncio
import json
import ssl
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestServer

from greensched_core import labels
from greensched_core.clock import ManualClock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.ledger_records import LedgerLine, Loss, LossReason, encode_line
from greensched_operator.ledger.extender_decisions import ExtenderReplicas

CLOSED_PORT = 1
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{{name: here, cluster: {{server: "{url}"}}}}]
contexts: [{{name: here, context: {{cluster: here, user: nobody, namespace: team}}}}]
users: [{{name: nobody, user: {{}}}}]
"""
OWN_CLIENT = """
import http.client, sys
from kubernetes import client, config, stream
kubeconfig, port = sys.argv[1], int(sys.argv[2])
core = client.CoreV1Api(config.new_client_from_config(kubeconfig))
forward = stream.portforward(
    core.connect_get_namespaced_pod_portforward, "ext-1", "greensched", ports=str(port)
)
connection = http.client.HTTPConnection("localhost")
connection.sock = forward.socket(port)
connection.request("GET", "/v1/decisions/ml/a", headers={"Connection": "close"})
print(connection.getresponse().read().decode())
"""


@dataclass
class Cluster:
    """An API server with pods, and what was asked of it."""

    url: str = ""
    ports: dict[str, int] = field(default_factory=dict)  # of running pods, by name
    forwards: list[str] = field(default_factory=list)
    lists: int = 0
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    selectors: set[str] = field(default_factory=set)
    namespaces: list[str | None] = field(default_factory=list)  # of which ledgers were asked

    async def pods(self, request: web.Request) -> web.Response:
        self.lists += 1
        self.selectors.add(request.query["labelSelector"].rpartition("=")[2])
        items = [
            {
                "metadata": {
                    "name": name,
                    "namespace": "greensched",
                    "annotations": {labels.EXPLAIN_PORT: str(port)},
                },
                "status": {"phase": "Running"},
            }
            for name, port in self.ports.items()
        ]
        return web.json_response({"metadata": {}, "items": items})

    async def forward(self, request: web.Request) -> web.WebSocketResponse:
        self.forwards.append(request.match_info["pod"])
        socket, port = (
            web.WebSocketResponse(protocols=("v4.channel.k8s.io",)),
            int(request.query["ports"]),
        )
        await socket.prepare(request)
        self.sockets.append(socket)
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError as fault:
            await socket.send_bytes(b"\x01" + str(fault).encode())
            return socket
        upwards = asyncio.create_task(_upwards(reader, socket))
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data[0] == 0:
                writer.write(message.data[1:])
        upwards.cancel()
        writer.close()
        return socket

    async def explain(self, request: web.Request) -> web.Response:
        self.asked.append(request.match_info["name"])
        if request.match_info["name"] == "unknown":
            return web.json_response({"error": "not remembered"}, status=404)
        if request.match_info["name"] == "broken":
            return web.Response(text="no JSON")
        if request.match_info["name"] == "slow":
            await asyncio.Event().wait()
        decision = {"pod": {"uid": request.path}, "decidedAt": 1.0}
        return web.json_response({"decisions": [decision], "long": "x" * 100_000})

    async def ledger(self, request: web.Request) -> web.Response:
        self.namespaces.append(request.query.get("namespace"))
        lost = Loss("l1", LossReason.LOCKED, 1.0, 2.0, 3)
        return web.Response(
            body=encode_line(LedgerLine(loss=lost)) + encode_line(LedgerLine(end=1))
        )


async def _upwards(reader: asyncio.StreamReader, socket: web.WebSocketResponse) -> None:
    while piece := await reader.read(4_096):
        await socket.send_bytes(b"\x00" + piece)
    await socket.close()


@pytest_asyncio.fixture
async def cluster() -> AsyncIterator[Cluster]:
    made, api, extender = Cluster(), web.Application(), web.Application()
    api.router.add_get("/api/v1/namespaces/greensched/pods", made.pods)
    api.router.add_get("/api/v1/namespaces/greensched/pods/{pod}/portforward", made.forward)
    extender.router.add_get("/v1/decisions/{namespace}/{name}", made.explain)
    extender.router.add_get("/v1/ledger", made.ledger)
    async with TestServer(api) as serving, TestServer(extender) as explaining:
        assert explaining.port is not None
        made.url, made.ports = f"http://127.0.0.1:{serving.port}", {"ext-1": explaining.port}
        yield made


async def greensched(*arguments: str) -> str:
    return await python("-m", "greensched_cli", *arguments)


async def python(*arguments: str) -> str:
    command = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await command.communicate()
    assert command.returncode == 0
    return told.decode()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest_asyncio.fixture
async def replicas(cluster: Cluster, clock: ManualClock) -> AsyncIterator[ExtenderReplicas]:
    access = ApiAccess(cluster.url, ssl.create_default_context())
    async with ApiClient(access) as api:
        asked = ExtenderReplicas(access, api, "greensched", clock, patience_s=5.0)
        yield asked
        await asked.close()


def pods(answers: Any) -> list[str]:
    return [answer["decisions"][0]["pod"]["uid"] for answer in answers]


async def test_kubernetes_own_client_gets_its_answer_from_the_stand_in(
    cluster: Cluster, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(KUBECONFIG.format(url=cluster.url))
    told = json.loads(await python("-c", OWN_CLIENT, str(config), str(cluster.ports["ext-1"])))
    assert told["decisions"][0]["pod"]["uid"] == "/v1/decisions/ml/a"


async def test_the_command_line_asks_the_extenders_in_the_same_way(
    cluster: Cluster, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(KUBECONFIG.format(url=cluster.url))
    told = await greensched("explain", "a", "-n", "ml", "-o", "json", "--kubeconfig", str(config))
    (decision,) = json.loads(told)
    assert (decision["replica"], decision["pod"]["uid"]) == ("ext-1", "/v1/decisions/ml/a")


async def test_the_command_line_asks_the_operators_in_the_same_way(
    cluster: Cluster, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    config.write_text(KUBECONFIG.format(url=cluster.url))
    told = await greensched("report", "--since", "1h", "--kubeconfig", str(config))
    assert "3 (locked)" in told
    assert cluster.selectors == {"controller"}


@pytest.mark.parametrize(
    ("options", "namespace"),
    [
        pytest.param((), "team", id="that-of-the-context"),
        pytest.param(("-n", "ml"), "ml", id="the-named-one"),
        pytest.param(("-A",), None, id="all"),
    ],
)
async def test_a_report_counts_the_work_of_the_contexts_namespace_unless_told_otherwise(
    cluster: Cluster, tmp_path: Path, options: tuple[str, ...], namespace: str | None
) -> None:
    config = tmp_path / "config"
    config.write_text(KUBECONFIG.format(url=cluster.url))
    told = await greensched("report", *options, "-o", "json", "--kubeconfig", str(config))
    assert (json.loads(told)["namespace"], cluster.namespaces) == (namespace, [namespace])


async def test_many_pods_are_asked_about_over_one_port_forward(
    cluster: Cluster, replicas: ExtenderReplicas
) -> None:
    answers = await asyncio.gather(*(replicas("ml", f"pod-{n}") for n in range(10)))
    assert sorted(pod for each in answers for pod in pods(each)) == [
        f"/v1/decisions/ml/pod-{n}" for n in range(10)
    ]
    assert cluster.forwards == ["ext-1"]


async def test_every_replica_is_asked_and_one_that_is_away_is_left_out(
    cluster: Cluster, replicas: ExtenderReplicas
) -> None:
    cluster.ports |= {"ext-2": cluster.ports["ext-1"], "ext-3": CLOSED_PORT}
    assert len(await replicas("ml", "a")) == 2
    assert set(cluster.forwards) == {"ext-1", "ext-2", "ext-3"}


async def test_a_port_forward_that_was_closed_is_opened_again(
    cluster: Cluster, replicas: ExtenderReplicas
) -> None:
    await replicas("ml", "a")
    await cluster.sockets[0].close()
    assert pods(await replicas("ml", "b")) == ["/v1/decisions/ml/b"]
    assert cluster.forwards == ["ext-1", "ext-1"]


@pytest.mark.parametrize("pod", ["unknown", "broken"])
async def test_a_replica_that_remembers_nothing_is_left_out(
    replicas: ExtenderReplicas, pod: str
) -> None:
    assert await replicas("ml", pod) == []
    assert pods(await replicas("ml", "a")) == ["/v1/decisions/ml/a"]


async def test_a_replica_that_is_frozen_holds_nobody_up(cluster: Cluster) -> None:
    access = ApiAccess(cluster.url, ssl.create_default_context())
    async with ApiClient(access) as api:
        hasty = ExtenderReplicas(access, api, "greensched", ManualClock(), patience_s=0.2)
        assert await hasty("ml", "slow") == []
        assert pods(await hasty("ml", "a")) == ["/v1/decisions/ml/a"]
        await hasty.close()


async def test_replicas_come_and_go(
    cluster: Cluster, replicas: ExtenderReplicas, clock: ManualClock
) -> None:
    await replicas("ml", "a")
    cluster.ports = {"ext-9": cluster.ports["ext-1"]}
    await replicas("ml", "a")
    assert (cluster.lists, cluster.forwards) == (1, ["ext-1"])
    clock.advance(60.0)
    await replicas("ml", "a")
    assert (cluster.lists, cluster.forwards) == (2, ["ext-1", "ext-9"])


async def test_only_extenders_are_asked(cluster: Cluster, replicas: ExtenderReplicas) -> None:
    await replicas("ml", "a")
    assert cluster.selectors == {"extender"}


async def test_names_stay_one_part_of_the_path(
    cluster: Cluster, replicas: ExtenderReplicas
) -> None:
    await replicas("ml", "a/../b")
    assert cluster.asked == ["a/../b"]


async def test_an_api_server_that_is_away_is_reported(replicas: ExtenderReplicas) -> None:
    access = ApiAccess("http://127.0.0.1:1", ssl.create_default_context())
    async with ApiClient(access) as api:
        with pytest.raises(ApiUnavailable):
            await ExtenderReplicas(access, api, "greensched", ManualClock())("ml", "a")
