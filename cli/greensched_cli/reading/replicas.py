"""Asks every replica of a component, through the API server's port-forward or at an address.

The routes listen only on the pod's loopback, so that Kubernetes' permission to port-forward
decides who may read them.
"""

import asyncio
import http.client
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from greensched_cli.reading.api_server import (
    PATIENCE_S,
    api_access,
    asking_for,
    missing_right,
)
from greensched_core import labels
from greensched_core.errors import ApiUnavailable

if TYPE_CHECKING:
    import aiohttp

    from greensched_core.kubernetes_api import ApiAccess, ApiClient

_MOST_BYTES = 2**31  # of an answer; a year's ledger has a tenth of that
ROLE = "greensched-explain"  # of the chart, in the namespace of the release
_RIGHT = (
    f"{{0}} in namespace {{1}}. The chart's Role {ROLE} there gives what is needed; "
    "an administrator binds it: kubectl -n {1} create rolebinding explain-YOU "
    f"--role={ROLE} --user=YOU"
)


@dataclass(frozen=True)
class Component:
    """Which pods to ask, where they listen, and how to read their answers."""

    name: str
    port: int  # on loopback, unless an annotation gives another
    patience_s: float = PATIENCE_S
    parse: Callable[[bytes], Any] = json.loads  # for answers with status 200; raises ValueError

    @property
    def selector(self) -> str:
        """Return those labels of the chart's pods that no chart value changes."""
        return f"app.kubernetes.io/part-of=greensched,app.kubernetes.io/component={self.name}"


EXTENDER = Component("extender", 8889)


@dataclass(frozen=True)
class ReplicaAnswer:
    """One replica's answer: its name, the HTTP status (0: not reached) and the body."""

    replica: str
    status: int
    body: Any

    @property
    def fault(self) -> str:
        """Return what is wrong, for a status other than 200."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        message = error or self.body
        return f"HTTP {self.status}: {message}" if self.status else str(message)


def faults_of(answers: Iterable[ReplicaAnswer], fine: Collection[int] = (200,)) -> list[str]:
    """Return a sentence for each fault, with all replicas that have it; `fine` are no faults."""
    replicas: dict[str, list[str]] = {}
    for each in answers:
        if each.status not in fine:
            replicas.setdefault(each.fault, []).append(each.replica)
    return [f"{', '.join(names)}: {fault}" for fault, names in replicas.items()]


@dataclass(frozen=True)
class Whereabouts:
    """Where to ask: one process at `address` ([http://]host:port), else the pods of a cluster."""

    address: str | None
    kubeconfig: str | None
    context: str | None
    namespace: str | None  # None: the usual one, else the one that has pods of ours
    explain_port: int | None  # None: from each pod's annotation


def ask_replicas(
    path: str, where: Whereabouts, component: Component = EXTENDER
) -> list[ReplicaAnswer]:
    """GET `path` from every running replica; raise ApiUnavailable if there is none.

    Raises BadInput for an unusable kubeconfig.
    """
    if where.address:
        return [_ask_address(where.address, path, component)]
    access = api_access(where.kubeconfig, where.context)
    return asyncio.run(_ask_pods(access, path, where, component))


def decision_path(namespace: str, pod: str) -> str:
    """Return the route of a pod's decisions."""
    return f"/v1/decisions/{quote(namespace, safe='')}/{quote(pod, safe='')}"


def port_of(
    annotations: Mapping[str, str] | None, given: int | None, default: int = EXTENDER.port
) -> int:
    """Return the port of a pod: the given one, else its annotation's, else the default.

    Raises ValueError if the annotation is not a port.
    """
    if given is not None:
        return given
    text = (annotations or {}).get(labels.EXPLAIN_PORT, str(default))
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text) < 65_536:
        raise ValueError(f"annotation {labels.EXPLAIN_PORT} {text!r} is not a port")
    return int(text)


def _ask_address(address: str, path: str, component: Component) -> ReplicaAnswer:
    import httpx

    url = address if "://" in address else f"http://{address}"
    try:
        response = httpx.get(url.rstrip("/") + path, timeout=component.patience_s, trust_env=False)
        read = component.parse if response.status_code == http.client.OK else json.loads
        return ReplicaAnswer(url, response.status_code, read(response.content))
    except httpx.ConnectError as fault:
        hint = (
            f"is it the explain port of the {component.name}, or a port-forward to it, and does "
            "it listen?"
        )
        return ReplicaAnswer(url, 0, {"error": f"{fault}; {hint}"})
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as fault:
        return ReplicaAnswer(url, 0, {"error": f"{fault}; --address is http://host:port"})
    except (httpx.HTTPError, ValueError) as fault:
        return ReplicaAnswer(
            url, 0, {"error": f"this is not an answer of the {component.name}: {fault}"}
        )


class _PodMeta(msgspec.Struct):
    name: str
    namespace: str
    annotations: dict[str, str] | None = None


class _Pod(msgspec.Struct):
    metadata: _PodMeta


class _Pods(msgspec.Struct):
    items: list[_Pod]


async def _ask_pods(
    access: "ApiAccess", path: str, where: Whereabouts, component: Component
) -> list[ReplicaAnswer]:
    # Imported here so that --help answers immediately.
    from greensched_core.kubernetes_api import ApiClient
    from greensched_core.port_forward import forwarding_session

    async with (
        ApiClient(access, timeout_s=PATIENCE_S) as client,
        forwarding_session(access) as session,
    ):
        pods = await _pods_to_ask(client, where.namespace, component)
        asked = (_ask_pod(session, access, pod, path, where, component) for pod in pods)
        return list(await asyncio.gather(*asked))


async def _pods_to_ask(
    client: "ApiClient", namespace: str | None, component: Component
) -> list[_PodMeta]:
    """Return the running pods of a component in a namespace; if None, look for them."""
    from greensched_cli.reading.operator_reading import USUAL_NAMESPACE

    first = namespace or USUAL_NAMESPACE
    refusal: ApiUnavailable | None = None
    try:
        pods = await _running_pods(client, first, component)
    except ApiUnavailable as fault:
        if namespace is not None or fault.status != http.client.FORBIDDEN:
            raise
        other = "If GreenSched is installed in another namespace, name it: --install-namespace"
        pods, refusal = [], ApiUnavailable(f"{fault}. {other}", fault.status)
    if not pods and namespace is None:
        pods = await _pods_anywhere(client, component)
    if not pods:
        raise refusal or ApiUnavailable(
            f"no {component.name} pod runs in namespace {first}; see `kubectl get pods -n {first} "
            f"-l {component.selector}`, or name another namespace with --install-namespace"
        )
    return pods


async def _pods_anywhere(client: "ApiClient", component: Component) -> list[_PodMeta]:
    """Return the running pods of a component, wherever they are; none without the right."""
    try:
        pods = await _running_pods(client, "", component)
    except ApiUnavailable as fault:
        if fault.status == http.client.FORBIDDEN:
            return []
        raise
    places = sorted({each.namespace for each in pods})
    if len(places) > 1:
        raise ApiUnavailable(
            f"{component.name} pods run in the namespaces {', '.join(places)}: "
            "name one of them with --install-namespace"
        )
    return pods


async def _running_pods(
    client: "ApiClient", namespace: str, component: Component
) -> list[_PodMeta]:
    """Return the running pods of a component in a namespace; "" is all."""
    wanted = {"labelSelector": component.selector, "fieldSelector": "status.phase=Running"}
    where = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    with asking_for(f"listing {component.name} pods", _RIGHT.format("list pods", namespace)):
        raw = await client.get(f"/api/v1{where}/pods", wanted)
        try:
            return [pod.metadata for pod in msgspec.json.decode(raw, type=_Pods).items]
        except (msgspec.MsgspecError, UnicodeDecodeError) as fault:  # a proxy's page, say
            raise ApiUnavailable(f"the answer is not a list of pods: {fault}") from fault


async def _ask_pod(
    session: "aiohttp.ClientSession", access: "ApiAccess", pod: _PodMeta, path: str,
    where: Whereabouts, component: Component,
) -> ReplicaAnswer:  # fmt: skip
    from aiohttp import ClientError, WSServerHandshakeError

    try:
        port = port_of(pod.annotations, where.explain_port, component.port)
        named = (pod.namespace, pod.name)
        status, body = await _got(session, access, named, port, path, component.patience_s)
        # Answers with other statuses than 200 are JSON.
        read = component.parse if status == http.client.OK else json.loads
        return ReplicaAnswer(pod.name, status, read(body))
    except WSServerHandshakeError as fault:
        right = _RIGHT.format("forward ports of pods", pod.namespace)
        refused = f"port-forward: HTTP {fault.status}: {fault.message}"
        message = missing_right(fault.status, right) or refused
    except TimeoutError:
        message = f"port-forward: no answer within {component.patience_s:g} s"
    except (OSError, ClientError, ValueError) as fault:
        message = f"port-forward: {fault}"
    return ReplicaAnswer(pod.name, 0, {"error": message})


async def _got(
    session: "aiohttp.ClientSession", access: "ApiAccess", pod: tuple[str, str], port: int,
    path: str, patience_s: float,
) -> tuple[int, bytes]:  # fmt: skip
    from greensched_core.port_forward import open_forward

    forward = None
    try:
        async with asyncio.timeout(patience_s):
            forward = await open_forward(session, access, pod, port, most_bytes=_MOST_BYTES)
            return await forward.get(path)
    finally:
        if forward is not None:
            await forward.close()
