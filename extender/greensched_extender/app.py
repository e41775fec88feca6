"""The HTTP face: the verbs on one port, explanations on another that only loopback reaches.

The verbs are plain ASGI endpoints on FastAPI's router: no request model, no response model, no
await but for the body.
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

from greensched_extender import protocol
from greensched_extender.explain import Explanations
from greensched_extender.metrics import ExtenderMetrics, Outcome
from greensched_extender.service import Answer, Extender

log = structlog.get_logger()

JSON = "application/json"
BODY_LIMIT_S = 10.0  # far beyond kube-scheduler's own limit for a whole call
_MOST_DIGITS = 18  # of a Content-Length; int() itself refuses thousands


@dataclass(frozen=True)
class Health:
    """How the process judges itself; each returns "" when all is well, else what is wrong."""

    alive: Callable[[], str]
    ready: Callable[[], str]


class BodyTooLarge(Exception):
    """The body is larger than we read."""


class BadHeader(Exception):
    """A header says that the body cannot be had."""


class GoneAway(Exception):
    """The caller hung up before its body was complete."""


class VerbEndpoint:
    """One verb as an ASGI application: reads the body up to a limit, answers, measures."""

    def __init__(
        self,
        verb: str,
        answer: Callable[[bytes], Answer | Awaitable[Answer]],
        metrics: ExtenderMetrics,
        max_body_bytes: int,
        body_limit_s: float = BODY_LIMIT_S,
    ) -> None:
        self._verb = verb
        self._answer = answer
        self._metrics = metrics
        self._max_body_bytes = max_body_bytes
        self._body_limit_s = body_limit_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            async with asyncio.timeout(self._body_limit_s):
                body = await self._read(scope, receive)
        except GoneAway:
            return
        except TimeoutError:
            self._metrics.request(self._verb, Outcome.BAD_REQUEST, 0.0)
            message = f"the body was not complete after {self._body_limit_s:g} s"
            await _send(send, 408, protocol.error(message), 0.0, [(b"connection", b"close")])
            return
        except BodyTooLarge:
            message = f"body is larger than {self._max_body_bytes} bytes (max_body_bytes)"
            self._metrics.request(self._verb, Outcome.TOO_LARGE, 0.0)
            # The rest is never read, so the connection cannot be used again.
            await _send(send, 413, protocol.error(message), 0.0, [(b"connection", b"close")])
            return
        except BadHeader as fault:
            self._metrics.request(self._verb, Outcome.BAD_REQUEST, 0.0)
            await _send(send, 400, protocol.error(str(fault)), 0.0, [(b"connection", b"close")])
            return
        # What the watches have brought by now is read first: after a standstill it may hold the
        # binding of this very pod, whose scheduler gave up on us.
        await asyncio.sleep(0)
        started = perf_counter()
        result = self._answer(body)
        answer = result if isinstance(result, Answer) else await result
        seconds = perf_counter() - started
        self._metrics.request(self._verb, answer.outcome, seconds)
        await _send(send, answer.status, answer.body, seconds)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        for name, value in scope["headers"]:
            if name == b"upgrade":  # httptools takes the body for the other protocol's
                raise BadHeader("Upgrade is not served here: send the request as HTTP/1.1")
            if name != b"content-length":
                continue
            if not value.isdigit():
                raise BadHeader(f"Content-Length is {value[:20]!r}: it must be a number of bytes")
            if len(value) > _MOST_DIGITS or int(value) > self._max_body_bytes:
                raise BodyTooLarge
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise GoneAway
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > self._max_body_bytes:
                raise BodyTooLarge
            chunks.append(chunk)
            if not message.get("more_body", False):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)


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
    answers: Mapping[str, Callable[[bytes], Answer | Awaitable[Answer]]] = {
        "filter": extender.filter,
        "prioritize": extender.prioritize,
        "bind": extender.bind,
    }
    for verb, answer in answers.items():
        endpoint = VerbEndpoint(verb, answer, metrics, max_body_bytes)
        app.router.routes.append(Route(f"/{verb}", endpoint, methods=["POST"]))

    async def healthz(request: Request) -> Response:
        return _verdict(health.alive())

    async def readyz(request: Request) -> Response:
        return _verdict(health.ready())

    async def expose(request: Request) -> Response:
        return Response(metrics.expose(collect), media_type=CONTENT_TYPE_LATEST)

    app.add_route("/healthz", healthz, methods=["GET"])
    app.add_route("/readyz", readyz, methods=["GET"])
    app.add_route("/metrics", expose, methods=["GET"])
    _say_errors(app)
    return app


def explain_app(explanations: Explanations) -> FastAPI:
    """Return the application that `greensched explain` and `greensched nodes` call."""
    app = FastAPI(title="GreenSched extender: why", openapi_url=None)

    async def decisions(request: Request) -> Response:
        namespace, name = request.path_params["namespace"], request.path_params["name"]
        found = explanations.decisions(namespace, name)
        if found:
            return _json(200, {"decisions": found})
        return _json(404, {"error": f"no decision on pod {namespace}/{name} is remembered here"})

    async def nodes(request: Request) -> Response:
        return _json(200, {"nodes": explanations.nodes()})

    async def policy(request: Request) -> Response:
        return _json(200, explanations.policy())

    app.add_route("/v1/decisions/{namespace}/{name}", decisions, methods=["GET"])
    app.add_route("/v1/nodes", nodes, methods=["GET"])
    app.add_route("/v1/policy", policy, methods=["GET"])
    _say_errors(app)
    return app


def _say_errors(app: FastAPI) -> None:
    async def not_found(request: Request, fault: Exception) -> Response:
        message = f"no such route: {request.method} {request.url.path}"
        return _json(404, {"Error": message, "error": message})

    async def wrong_method(request: Request, fault: Exception) -> Response:
        message = f"{request.url.path} does not take {request.method}"
        answer = _json(405, {"Error": message, "error": message})
        answer.headers.update(getattr(fault, "headers", None) or {})  # Allow: what it does take
        return answer

    async def failed(request: Request, fault: Exception) -> Response:
        log.error("request failed", path=request.url.path, exc_info=fault)
        return _json(500, {"Error": f"{type(fault).__name__}: see the log"})

    app.add_exception_handler(404, not_found)
    app.add_exception_handler(405, wrong_method)
    app.add_exception_handler(Exception, failed)


def _verdict(wrong: str) -> Response:
    return Response(wrong or "ok", status_code=503 if wrong else 200, media_type="text/plain")


def _json(status: int, content: Any) -> Response:
    return Response(protocol.encode(content), status_code=status, media_type=JSON)
