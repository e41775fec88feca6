"""Asks every replica of a component, through the API server's port-forward or at an address.

The routes asked listen on the pod's loopback only, so that Kubernetes' own permission to
port-forward decides who may read them.
"""

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar
from urllib.parse import quote

from greensched_cli.reading.api_server import PATIENCE_S, asking_for, core_api, refusal
from greensched_core import labels
from greensched_core.errors import ApiUnavailable

T = TypeVar("T")

_PROXY = "Kubernetes port forward proxy"  # what the kubernetes package calls its threads
_RIGHT = (
    "{0} in namespace {1}. The chart's Role greensched-explain there gives what is needed; "
    "an administrator binds it: kubectl -n {1} create rolebinding explain-YOU "
    "--role=greensched-explain --user=YOU"
)


@dataclass(frozen=True)
class Component:
    """Which pods are asked, where they listen, and how their answers are read."""

    name: str
    port: int  # on loopback, where no annotation says otherwise
    namespace_option: str  # of the command, for who looks in the wrong one
    patience_s: float = PATIENCE_S
    parse: Callable[[bytes], Any] = json.loads  # of an answer with status 200; raises ValueError

    @property
    def selector(self) -> str:
        """Return the labels of the chart's pods that no value changes, as nameOverride would."""
        return f"app.kubernetes.io/part-of=greensched,app.kubernetes.io/component={self.name}"


EXTENDER = Component("extender", 8889, "--extender-namespace")


@dataclass(frozen=True)
class Answer:
    """What one replica said: its name, the HTTP status (0: it was not reached), the body."""

    replica: str
    status: int
    body: Any

    @property
    def fault(self) -> str:
        """Say what is wrong, for a status other than 200."""
        said = self.body.get("error") if isinstance(self.body, dict) else None
        told = said or self.body
        return f"HTTP {self.status}: {told}" if self.status else str(told)


@dataclass(frozen=True)
class Whereabouts:
    """Where to ask: one process at `address` ([http://]host:port), else the pods of a cluster."""

    address: str | None
    kubeconfig: str | None
    context: str | None
    namespace: str
    explain_port: int | None  # None: as each pod says


def ask_replicas(path: str, where: Whereabouts, component: Component = EXTENDER) -> list[Answer]:
    """GET `path` from every running replica; raise ApiUnavailable when there is none to ask.

    Raises BadInput for a kubeconfig that cannot be used.
    """
    if where.address:
        return [_ask_address(where.address, path, component)]
    answers = list(_ask_pods(path, where, component))
    if not answers:
        raise ApiUnavailable(
            f"no {component.name} pod runs in namespace {where.namespace}; see "
            f"`kubectl get pods -n {where.namespace} -l {component.selector}`, or name another "
            f"namespace with {component.namespace_option}"
        )
    return answers


def decision_path(namespace: str, pod: str) -> str:
    """Return the route of a pod's decisions."""
    return f"/v1/decisions/{quote(namespace, safe='')}/{quote(pod, safe='')}"


def port_of(
    annotations: Mapping[str, str] | None, given: int | None, default: int = EXTENDER.port
) -> int:
    """Return where a pod listens: what was given, else its annotation, else the default.

    Raises ValueError when the annotation is no port.
    """
    if given is not None:
        return given
    text = (annotations or {}).get(labels.EXPLAIN_PORT, str(default))
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text) < 65_536:
        raise ValueError(f"annotation {labels.EXPLAIN_PORT} {text!r} is no port")
    return int(text)


def get_over(
    connected: Any,
    path: str,
    patience_s: float = PATIENCE_S,
    parse: Callable[[bytes], Any] = json.loads,
) -> tuple[int, Any]:
    """GET `path` over a connected socket; return the status and the body, parsed.

    A status other than 200 comes with JSON. Raises TimeoutError when nothing comes for
    `patience_s`, ValueError for what cannot be parsed.
    """
    connected.settimeout(patience_s)
    connection = http.client.HTTPConnection("localhost")
    connection.sock = connected
    connection.request("GET", path, headers={"Connection": "close"})
    response = connection.getresponse()
    read = parse if response.status == http.client.OK else json.loads
    return response.status, read(response.read())


def _ask_address(address: str, path: str, component: Component) -> Answer:
    import httpx

    url = address if "://" in address else f"http://{address}"
    try:
        response = httpx.get(url.rstrip("/") + path, timeout=component.patience_s, trust_env=False)
        read = component.parse if response.status_code == http.client.OK else json.loads
        return Answer(url, response.status_code, read(response.content))
    except httpx.ConnectError as fault:
        hint = (
            f"is it the explain port of the {component.name}, or a port-forward to it, and does "
            "it listen?"
        )
        return Answer(url, 0, {"error": f"{fault}; {hint}"})
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as fault:
        return Answer(url, 0, {"error": f"{fault}; --address is http://host:port"})
    except (httpx.HTTPError, ValueError) as fault:
        return Answer(url, 0, {"error": f"this is no answer of the {component.name}: {fault}"})


def within(patience_s: float, work: Callable[[], T]) -> Future[T]:
    """Start `work` on a thread that nobody waits for at the end; the future keeps the deadline.

    Its result() raises what `work` raised, or TimeoutError from `patience_s` after now on.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as fault:  # noqa: BLE001 - it is raised where the result is asked for
            with suppress(InvalidStateError):  # too late
                future.set_exception(fault)

    def give_up() -> None:
        with suppress(InvalidStateError):  # in time
            future.set_exception(TimeoutError(f"no answer within {patience_s:g} s"))

    threading.Thread(target=run, daemon=True).start()
    deadline = threading.Timer(patience_s, give_up)
    deadline.daemon = True
    deadline.start()
    return future


def _ask_pods(path: str, where: Whereabouts, component: Component) -> Iterator[Answer]:
    core = core_api(where.kubeconfig, where.context)
    from kubernetes import client

    threading.excepthook = without_proxies(threading.excepthook)
    asked = [
        (
            str(pod.metadata.name),
            within(component.patience_s, partial(_ask_pod, core, pod, where, path, component)),
        )
        for pod in _running_pods(core, where.namespace, component)
    ]
    for name, answer in asked:
        try:
            yield Answer(name, *answer.result())
        except client.ApiException as fault:
            told = refusal(fault, _RIGHT.format("forward ports of pods", where.namespace))
            yield Answer(name, 0, {"error": told or f"port-forward: {fault}"})
        except (OSError, http.client.HTTPException, ValueError) as fault:
            yield Answer(name, 0, {"error": f"port-forward: {fault}"})


def without_proxies(hook: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a hook for exceptions of threads that leaves out the kubernetes package's proxies.

    One of them forwards each port. Where the API server closes the connection at once, when we have
    our answer, it meets a broken pipe or a TLS stream without an end, and would print a traceback.
    A proxy that breaks before tells by the answer that does not come.
    """

    def quiet(fault: Any) -> None:
        if fault.thread is None or not fault.thread.name.startswith(_PROXY):
            hook(fault)

    return quiet


def _running_pods(core: Any, namespace: str, component: Component) -> list[Any]:
    right = _RIGHT.format("list pods", namespace)
    with asking_for(f"listing {component.name} pods", right):
        pods = core.list_namespaced_pod(
            namespace, label_selector=component.selector, _request_timeout=PATIENCE_S
        ).items
    return [pod for pod in pods if pod.metadata and pod.status and pod.status.phase == "Running"]


def _ask_pod(
    core: Any, pod: Any, where: Whereabouts, path: str, component: Component
) -> tuple[int, Any]:
    from kubernetes import stream

    port = port_of(pod.metadata.annotations, where.explain_port, component.port)
    forward = stream.portforward(
        core.connect_get_namespaced_pod_portforward,
        pod.metadata.name,
        where.namespace,
        ports=str(port),
    )
    try:
        return get_over(forward.socket(port), path, component.patience_s, component.parse)
    finally:
        forward.close()
