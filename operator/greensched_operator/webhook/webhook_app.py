"""The webhook's routes: reviews over TLS, probes and metrics in the clear on another port."""

from collections.abc import Callable
from time import perf_counter

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from greensched_core.bodies import BadHeader, Bodies, BodyTooLarge, GoneAway, TooManyBodies
from greensched_core.clock import Clock
from greensched_core.errors import BadInput
from greensched_operator.runtime.metrics import WebhookMetrics
from greensched_operator.webhook.admission import (
    ReviewSurroundings,
    Verdict,
    answer,
    decide,
    read_review,
)

log = structlog.get_logger()

MUTATE = "/mutate"
# kube-apiserver takes requests of 3 MiB, and etcd stores 1.5; to decode 4 MiB takes 70 MB at worst.
MOST_BODY_BYTES = 4 * 2**20
_MOST_TOGETHER_BYTES = 4 * MOST_BODY_BYTES


class Webhook:
    """Answers reviews; whatever goes wrong, the workload is admitted as it is."""

    def __init__(
        self, surroundings: Callable[[], ReviewSurroundings], metrics: WebhookMetrics, clock: Clock
    ) -> None:
        """`surroundings` is asked at each review for what holds then."""
        self._surroundings = surroundings
        self._metrics = metrics
        self._clock = clock
        self._bodies = Bodies(MOST_BODY_BYTES, _MOST_TOGETHER_BYTES)

    def review(self, body: bytes) -> bytes:
        """Return the answer to one AdmissionReview; raises BadInput when it is none."""
        request = read_review(body)
        try:
            verdict = decide(request, self._surroundings(), self._clock.now())
        except BadInput as fault:
            verdict = Verdict("unreadable", warnings=(f"greensched: not held: {fault}"[:256],))
        except Exception:  # our own fault must not keep anybody's work from running
            log.exception("a review failed; the workload is admitted unchanged")
            verdict = Verdict("failed")
        self._metrics.reviews.labels(verdict.outcome).inc()
        return answer(request.uid, verdict)

    async def serve(self, request: Request) -> Response:
        """Answer one request over HTTP."""
        try:
            body = await self._bodies.read(request.scope, request.receive)
        except GoneAway:
            return Response(status_code=400)  # which nobody reads
        except BodyTooLarge:
            return self._refused(413, f"no review is larger than {MOST_BODY_BYTES} bytes")
        except TooManyBodies:
            message = "too many bytes of reviews are being read at once: try again"
            return self._refused(503, message, "crowded-out")
        except BadHeader as fault:
            return self._refused(400, str(fault))
        started = perf_counter()
        try:
            reply = self.review(body)
        except BadInput as fault:
            self._metrics.reviews.labels("bad-request").inc()
            return PlainTextResponse(f"{fault}\n", status_code=400)
        self._metrics.seconds.observe(perf_counter() - started)
        return Response(reply, media_type="application/json")

    def _refused(self, status: int, message: str, outcome: str = "bad-request") -> Response:
        self._metrics.reviews.labels(outcome).inc()
        # The rest is never read, so the connection cannot be used again.
        return PlainTextResponse(f"{message}\n", status, {"connection": "close"})


def webhook_app(webhook: Webhook) -> Starlette:
    """Return the application that the API server calls."""
    return Starlette(routes=[Route(MUTATE, webhook.serve, methods=["POST"])])


def health_app(
    registry: CollectorRegistry, alive: Callable[[], str], ready: Callable[[], str]
) -> Starlette:
    """Return probes and metrics; `alive` and `ready` return "" when all is well, else what is not.

    One application for each of the operator's processes.
    """

    def probe(told: Callable[[], str]) -> Callable[[Request], PlainTextResponse]:
        def answer_probe(_: Request) -> PlainTextResponse:
            wrong = told()
            return PlainTextResponse(wrong or "ok", status_code=503 if wrong else 200)

        return answer_probe

    def metrics(_: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[
            Route("/healthz", probe(alive)),
            Route("/readyz", probe(ready)),
            Route("/metrics", metrics),
        ]
    )
