"""HTTP routes: the verbs on one port, explanations on another that only loopback reaches.

The verbs are plain ASGI endpoints on FastAPI's router, without request and response models.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import structlog
from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from greensched_core.bodies import (
    BadHeader,
    Bodies,
    BodyTooLarge,
    ClientDisconnected,
    TooManyBodies,
)
from greensched_extender import protocol
from greensched_extender.explain import Explanations
from greensched_extender.metrics import ExtenderMetrics, RequestOutcome
from greensched_extender.service import Extender, ExtenderReply

log = structlog.get_logger()

JSON = "application/json"


@dataclass(frozen=True)
class Health:
    """The process's health checks; each returns "" when all is well, else what is wrong."""

    alive: Callable[[], str]
    ready: Callable[[], str]


class VerbEndpoint:
    """One verb as an ASGI application: reads the body up to a limit, answers and measures."""

    def __init__(
        self,
        verb: str,
        answer: Callable[[bytes], ExtenderReply | Awaitable[ExtenderReply]],
        metrics: ExtenderMetrics,
        bodies: Bodies,
    ) -> None:
        self._verb = verb
        self._answer = answer
        self._metrics = metrics
        self._bodies = bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            body = await self._bodies.read(scope, receive)
        except ClientDisconnected:
            return
        except BodyTooLarge:
            message = f"body is larger than {self._bodies.most_bytes} bytes (max_body_bytes)"
            await self._refuse(send, 413, message, RequestOutcome.TOO_LARGE)
            return
        except TooManyBodies:
            message = "too many bytes of requests are being read at once: try again"
            await self._refuse(send, 503, message, RequestOutcome.CROWDED_OUT)
            return
        except BadHeader as fault:
            await self._refuse(send, 400, str(fault), RequestOutcome.BAD_REQUEST)
            return
        # Let the watches handle their pending events first. After a stall these may include the
        # binding of this pod, if its scheduler stopped waiting for our answer.
        await asyncio.sleep(0)
        started = perf_counter()
        result = self._answer(body)
        answer = result if isinstance(result, ExtenderReply) else await result
        seconds = perf_counter() - started
        self._metrics.request(self._verb, answer.outcome, seconds)
        await _send(send, answer.status, answer.body, seconds)

    async def _refuse(self, send: Send, status: int, message: str, outcome: RequestOutcome) -> None:
        self._metrics.request(self._verb, outcome, 0.0)
        # The rest of the body is never read, so the connection cannot be reused.
        await _send(send, status, protocol.error(message), 0.0, [(b"connection", b"close")])


async def _send(
    send: Send,
    status: int,
    body: bytes,
    handler_s: float,
    more_headers: list[tuple[bytes, bytes]] | None = None,
) -> None:
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"server-timing", b"handler;dur=%.3f" % (handler_s * 1e3)),
        *(more_headers or ()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def extender_app(
    extender: Extender,
    metrics: ExtenderMetrics,
    health: Health,
    collect: Callable[[], None],
    *,
    max_body_bytes: int,
) -> FastAPI:
    """Return the application that kube-scheduler, the kubelet and Prometheus call."""
    app = FastAPI(title="GreenSched extender", openapi_url=None)
    answers: Mapping[str, Callable[[bytes], ExtenderReply | Awaitable[ExtenderReply]]] = {
        "filter": extender.filter,
        "prioritize": extender.prioritize,
        "bind": extender.bind,
    }
    bodies = Bodies(max_body_bytes, 2 * max_body_bytes)
    for verb, answer in answers.items():
        endpoint = VerbEndpoint(verb, answer, metrics, bodies)
        app.router.routes.append(Route(f"/{verb}", endpoint, methods=["POST"]))

    async def healthz(request: Request) -> Response:
        return _health_response(health.alive())

    async def readyz(request: Request) -> Response:
        return _health_response(health.ready())

    async def expose(request: Request) -> Response:
        return Response(metrics.expose(collect), media_type=CONTENT_TYPE_LATEST)

    app.add_route("/healthz", healthz, methods=["GET"])
    app.add_route("/readyz", readyz, methods=["GET"])
    app.add_route("/metrics", expose, methods=["GET"])
    _add_error_handlers(app)
    return app


def explain_app(explanations: Explanations) -> FastAPI:
    """Return the application that `greensched explain` and `greensched nodes` call."""
    app = FastAPI(title="GreenSched extender: why", openapi_url=None)

    async def decisions(request: Request) -> Response:
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        found = explanations.decisions(namespace, name)
        if found:
            return _json(200, {"decisions": found})
        return _json(
            404, {"error": f"this replica remembers no decision on pod {namespace}/{name}"}
        )

    async def nodes(request: Request) -> Response:
        return _json(200, {"nodes": explanations.nodes()})

    async def policy(request: Request) -> Response:
        return _json(200, explanations.policy())

    app.add_route("/v1/decisions/{namespace}/{name}", decisions, methods=["GET"])
    app.add_route("/v1/nodes", nodes, methods=["GET"])
    app.add_route("/v1/policy", policy, methods=["GET"])
    _add_error_handlers(app)
    return app


def _add_error_handlers(app: FastAPI) -> None:
    async def not_found(request: Request, fault: Exception) -> Response:
        message = f"no such route: {request.method} {request.url.path}"
        return _json(404, {"Error": message, "error": message})

    async def wrong_method(request: Request, fault: Exception) -> Response:
        message = f"{request.url.path} does not take {request.method}"
        answer = _json(405, {"Error": message, "error": message})
        answer.headers.update(getattr(fault, "headers", None) or {})  # Allow: accepted methods
        return answer

    async def failed(request: Request, fault: Exception) -> Response:
        log.error("request failed", path=request.url.path, exc_info=fault)
        return _json(500, {"Error": f"{type(fault).__name__}: see the log"})

    app.add_exception_handler(404, not_found)
    app.add_exception_handler(405, wrong_method)
    app.add_exception_handler(Exception, failed)


def _health_response(fault: str) -> Response:
    return Response(fault or "ok", status_code=503 if fault else 200, media_type="text/plain")


def _json(status: int, content: Any) -> Response:
    return Response(protocol.encode(content), status_code=status, media_type=JSON)
