"""A request that is cancelled while TLS shakes hands closes its socket."""

from typing import Any

import httpx


async def close_cancelled(request: httpx.Request) -> None:
    """Close the connection that a request opens, where its handshake is cancelled.

    An event hook for requests of an httpx.AsyncClient. httpcore 1.0.9 closes what fails, and leaves
    what is cancelled to the collector (`except Exception` in `_backends/anyio.py`).
    """
    opened: list[Any] = []

    async def trace(event: str, told: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            opened.append(told["return_value"])
        elif event == "connection.start_tls.failed":
            for stream in opened:
                await stream.aclose()

    request.extensions["trace"] = trace
