import json
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from greensched_core.kubernetes_api import ApiAccess, ApiClient

World = Any


class Server:
    """An API server that refuses bindings as told and knows one pod."""

    def __init__(self) -> None:
        self.refuse: int | None = None
        self.pod: dict[str, Any] = {}
        self.asked: list[httpx.Request] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        if request.method == "GET":
            return httpx.Response(200 if self.pod else 404, json=self.pod)
        if self.refuse:
            return httpx.Response(self.refuse, json={"message": "pod is already assigned"})
        return httpx.Response(201, json={})


@pytest.fixture
def server() -> Server:
    """The API server."""
    return Server()


@pytest.fixture
async def world(new_world: Callable[..., World], server: Server) -> AsyncIterator[World]:
    """An extender that binds."""
    transport = httpx.MockTransport(server.answer)
    access = ApiAccess("http://api", ssl.create_default_context())
    async with ApiClient(access, transport=transport) as client:
        yield new_world(binder=client)


ARGS = {"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "n1"}


async def bound(world: World, **changes: str) -> tuple[int, str]:
    answer = await world.extender.bind(json.dumps(ARGS | changes).encode())
    return answer.status, json.loads(answer.body)["Error"]


async def test_a_pod_is_bound_with_its_uid(world: World, server: Server) -> None:
    assert await bound(world) == (200, "")
    request = server.asked[0]
    assert request.url.path == "/api/v1/namespaces/d/pods/p/binding"
    body = json.loads(request.content)
    assert body["metadata"] == {"name": "p", "namespace": "d", "uid": "u"}
    assert body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        pytest.param(("u", "n1"), "", id="same-node-is-success"),
        pytest.param(("u", "n2"), "bound to n2, not to n1", id="other-node"),
        pytest.param(("v", "n1"), "replaced by another pod", id="another-pod-of-that-name"),
        pytest.param(("u", None), "already assigned", id="not-bound-at-all"),
        pytest.param(None, "cannot be read", id="pod-gone"),
    ],
)
async def test_a_conflict_is_success_only_for_the_same_pod_and_node(
    world: World, server: Server, pod: tuple[str, str | None] | None, said: str
) -> None:
    server.refuse = 409
    if pod is not None:
        server.pod = {"metadata": {"uid": pod[0]}, "spec": {"nodeName": pod[1]}}
    status, error = await bound(world)
    assert status == 200
    assert (said in error) if said else (error == "")


async def test_any_other_refusal_is_reported(world: World, server: Server) -> None:
    server.refuse = 403
    assert "already assigned" in (await bound(world))[1]
    assert len(server.asked) == 1


async def test_names_cannot_leave_their_path(world: World, server: Server) -> None:
    await bound(world, PodName="../../nodes/x")
    assert server.asked[0].url.raw_path == b"/api/v1/namespaces/d/pods/..%2F..%2Fnodes%2Fx/binding"


async def test_a_binding_without_a_node_is_a_bad_request(world: World) -> None:
    status, error = await bound(world, Node="")
    assert (status, "`Node` is missing" in error) == (400, True)
