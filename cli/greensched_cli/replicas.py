"""Asks every extender replica, through the API server's port-forward or at a given address.

The explain routes listen on the pod's loopback only, so that Kubernetes' own permission to
port-forward decides who may read them.
"""

import http.client
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from greensched_core.errors import ApiUnavailable, BadInput

EXPLAIN_PORT = 8889
_SELECTOR = "app.kubernetes.io/name=greensched,app.kubernetes.io/component=extender"


@dataclass(frozen=True)
class Answer:
    """What one replica said: its name, the HTTP status, the JSON body."""

    replica: str
    status: int
    body: Any


def ask_replicas(
    path: str, *, address: str | None, kubeconfig: str | None, context: str | None, namespace: str
) -> list[Answer]:
    """GET `path` from every replica; raise ApiUnavailable when none can be asked.

    With `address` (http://host:port) that one process is asked; otherwise every ready extender pod
    in `namespace` is, by port-forward.
    """
    if address:
        return [_ask_address(address, path)]
    answers = list(_ask_pods(path, kubeconfig, context, namespace))
    if not answers:
        raise ApiUnavailable(
            f"no extender pod in namespace {namespace} answered; see "
            f"`kubectl get pods -n {namespace} -l {_SELECTOR}`, or name another namespace with "
            "--extender-namespace"
        )
    return answers


def decision_path(namespace: str, pod: str) -> str:
    """Return the route of a pod's decisions."""
    return f"/v1/decisions/{quote(namespace, safe='')}/{quote(pod, safe='')}"


def _ask_address(address: str, path: str) -> Answer:
    try:
        response = httpx.get(address.rstrip("/") + path, timeout=10.0, trust_env=False)
        return Answer(address, response.status_code, response.json())
    except (httpx.HTTPError, ValueError) as fault:
        raise ApiUnavailable(f"{address}{path}: {fault}") from fault


def _ask_pods(
    path: str, kubeconfig: str | None, context: str | None, namespace: str
) -> Iterator[Answer]:
    from kubernetes import client, config, stream

    try:
        api_client = config.new_client_from_config(  # type: ignore[no-untyped-call]  # untyped
            config_file=kubeconfig, context=context
        )
    except (config.ConfigException, OSError) as fault:
        raise BadInput(f"kubeconfig {kubeconfig or '($KUBECONFIG)'}: {fault}") from fault
    core = client.CoreV1Api(api_client)
    try:
        pods = core.list_namespaced_pod(namespace, label_selector=_SELECTOR).items
    except client.ApiException as fault:
        raise ApiUnavailable(
            f"listing extender pods: HTTP {fault.status}: {fault.reason}"
        ) from fault
    running = [pod for pod in pods if pod.status and pod.status.phase == "Running"]
    for name in (str(pod.metadata.name) for pod in running if pod.metadata):
        try:
            forward = stream.portforward(
                core.connect_get_namespaced_pod_portforward,
                name,
                namespace,
                ports=str(EXPLAIN_PORT),
            )
            status, body = _get_over(forward.socket(EXPLAIN_PORT), path)
        except (client.ApiException, OSError, http.client.HTTPException, ValueError) as fault:
            yield Answer(name, 0, {"error": f"port-forward: {fault}"})
            continue
        yield Answer(name, status, body)


def _get_over(connected: Any, path: str) -> tuple[int, Any]:
    connected.settimeout(10.0)
    connected.setblocking(True)
    connection = http.client.HTTPConnection("localhost", EXPLAIN_PORT, timeout=10.0)
    connection.sock = connected
    connection.request("GET", path, headers={"Connection": "close"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())
