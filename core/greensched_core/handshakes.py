"""Closes the socket of a request that is cancelled during its TLS handshake."""

from typing import Any

import httpx


async def close_cancelled(request: httpx.Request) -> None:
    """Close the connection that a request opens if its handshake is cancelled.

    This is a request event hook of httpx.AsyncClient. httpcore 1.0.9 closes a connection whose
    handshake fails, but leaves a cancelled one to the garbage collector (`except Exception` in
    `_backends/anyio.py`).
    """
    opened: list[Any] = []

    async def trace(event: str, details: dict[str, Any]) -> None:
        if event == "connection.connect_tcp.complete":
            opened.append(details["return_value"])
        elif event == "connection.start_tls.failed":
            for stream in opened:
                await stream.aclose()

    request.extensions["trace"] = trace
