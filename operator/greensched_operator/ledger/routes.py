"""Serves the ledger as newline-delimited JSON, for a listener on loopback."""

import math
from collections.abc import Iterator
from itertools import chain
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from greensched_core.errors import BadInput
from greensched_core.ledger_records import LedgerLine, LedgerRecord, Loss, encode_line
from greensched_operator.ledger.faults import LedgerUnusable

NDJSON = "application/x-ndjson"
LEDGER_PATH = "/v1/ledger"
_LINES_AT_ONCE = 500  # sent as one piece


class Readable(Protocol):
    """A ledger that can be read; both methods raise LedgerUnusable."""

    def records(
        self, since: float, until: float | None, namespace: str | None
    ) -> Iterator[LedgerRecord]:
        """Yield records of a span of time, the oldest first."""
        ...

    def losses(self, since: float, until: float | None) -> list[Loss]:
        """Return the losses of a span of time."""
        ...


def ledger_routes(ledger: Readable) -> list[Route]:
    """Return the route GET /v1/ledger?since=…&until=…&namespace=…, times in epoch seconds.

    It answers 400 to invalid times, and 503 while the ledger cannot be read. The last line marks
    the end; it is missing if reading failed half-way. There is no authentication: anyone who can
    reach the listener, by Kubernetes' permission to port-forward, may read.
    """

    async def read(request: Request) -> Response:
        asked = request.query_params
        try:
            since, until = _time(asked.get("since")) or 0.0, _time(asked.get("until"))
        except BadInput as fault:
            return JSONResponse({"error": str(fault)}, status_code=400)
        lines = _pieces(ledger, since, until, asked.get("namespace"))
        try:
            first = await run_in_threadpool(next, lines)
        except LedgerUnusable as fault:
            return JSONResponse({"error": f"the ledger: {fault}"}, status_code=503)
        return StreamingResponse(chain([first], lines), media_type=NDJSON)

    return [Route(LEDGER_PATH, read, methods=["GET"])]


def _pieces(
    ledger: Readable, since: float, until: float | None, namespace: str | None
) -> Iterator[bytes]:
    """Yield the lines in pieces, beginning with the losses; always yields at least once."""
    piece = [encode_line(LedgerLine(loss=loss)) for loss in ledger.losses(since, until)]
    sent = len(piece)
    for record in ledger.records(since, until, namespace):
        piece.append(encode_line(LedgerLine(record=record)))
        sent += 1
        if len(piece) >= _LINES_AT_ONCE:
            yield b"".join(piece)
            piece = []
    yield b"".join([*piece, encode_line(LedgerLine(end=sent))])


def _time(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError as fault:
        raise BadInput(f"{text[:60]!r} is not a time: write seconds since the epoch") from fault
    if not math.isfinite(seconds):
        raise BadInput(f"{text[:60]!r} is not a time: write seconds since the epoch")
    return seconds
