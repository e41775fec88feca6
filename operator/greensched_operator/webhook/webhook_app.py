"""The webhook's routes: reviews over TLS; probes and metrics over plain HTTP on another port."""

from collections.abc import Callable
from time import perf_counter

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from greensched_core.bodies import (
    BadHeader,
    Bodies,
    BodyTooLarge,
    ClientDisconnected,
    TooManyBodies,
)
from greensched_core.clock import Clock
from greensched_core.errors import BadInput
from greensched_operator.webhook.admission import (
    ReviewOutcome,
    ReviewSurroundings,
    Verdict,
    answer,
    decide,
    read_review,
)
from greensched_operator.webhook.metrics import WebhookMetrics

log = structlog.get_logger()

MUTATE = "/mutate"
# kube-apiserver accepts 3 MiB, etcd stores 1.5 MiB; decoding 4 MiB takes at most 70 MB.
MOST_BODY_BYTES = 4 * 2**20
_MOST_TOGETHER_BYTES = 4 * MOST_BODY_BYTES


class Webhook:
    """Answers reviews; if anything fails, the workload is admitted unchanged."""

    def __init__(
        self, surroundings: Callable[[], ReviewSurroundings], metrics: WebhookMetrics, clock: Clock
    ) -> None:
        """Call `surroundings` at each review for the current input."""
        self._surroundings = surroundings
        self._metrics = metrics
        self._clock = clock
        self._bodies = Bodies(MOST_BODY_BYTES, _MOST_TOGETHER_BYTES)

    def review(self, body: bytes) -> bytes:
        """Return the answer to an AdmissionReview; raises BadInput if the body is none."""
        request = read_review(body)
        try:
            verdict = decide(request, self._surroundings(), self._clock.now())
        except BadInput as fault:
            verdict = Verdict(
                ReviewOutcome.UNREADABLE, warnings=(f"greensched: not held: {fault}"[:256],)
            )
        except Exception:  # a bug of ours must not keep work from running
            log.exception("a review failed; the workload is admitted unchanged")
            verdict = Verdict(ReviewOutcome.FAILED)
        self._metrics.reviews.labels(verdict.outcome).inc()
        return answer(request.uid, verdict)

    async def serve(self, request: Request) -> Response:
        """Answer one request over HTTP."""
        try:
            body = await self._bodies.read(request.scope, request.receive)
        except ClientDisconnected:
            return Response(status_code=400)  # the client has closed the connection
        except BodyTooLarge:
            return self._refused(413, f"the review is larger than {MOST_BODY_BYTES} bytes")
        except TooManyBodies:
            message = "too many bytes of reviews are being read at once: try again"
            return self._refused(503, message, ReviewOutcome.CROWDED_OUT)
        except BadHeader as fault:
            return self._refused(400, str(fault))
        started = perf_counter()
        try:
            reply = self.review(body)
        except BadInput as fault:
            self._metrics.reviews.labels(ReviewOutcome.BAD_REQUEST).inc()
            return PlainTextResponse(f"{fault}\n", status_code=400)
        self._metrics.seconds.observe(perf_counter() - started)
        return Response(reply, media_type="application/json")

    def _refused(
        self, status: int, message: str, outcome: ReviewOutcome = ReviewOutcome.BAD_REQUEST
    ) -> Response:
        self._metrics.reviews.labels(outcome).inc()
        # The rest is never read, so the connection cannot be used again.
        return PlainTextResponse(f"{message}\n", status, {"connection": "close"})


def webhook_app(webhook: Webhook) -> Starlette:
    """Return the application that the API server calls."""
    return Starlette(routes=[Route(MUTATE, webhook.serve, methods=["POST"])])


def health_app(
    registry: CollectorRegistry, alive: Callable[[], str], ready: Callable[[], str]
) -> Starlette:
    """Return the application with probes and metrics, one for each of the operator's processes.

    `alive` and `ready` return "" if all is well, else the fault.
    """

    def probe(check: Callable[[], str]) -> Callable[[Request], PlainTextResponse]:
        def answer_probe(_: Request) -> PlainTextResponse:
            fault = check()
            return PlainTextResponse(fault or "ok", status_code=503 if fault else 200)

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
