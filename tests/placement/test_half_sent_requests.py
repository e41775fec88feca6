"""Callers that never come to an end take nothing from the scheduler."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from tests.placement.conftest import Scene

HEAD = b"POST /prioritize HTTP/1.1\r\nHost: extender\r\nContent-Type: application/json\r\n"
CLOSED_WITHIN_S = 40.0  # five, on a machine that is not busy


async def until_closed(reader: asyncio.StreamReader) -> None:
    try:
        await reader.read()
    except ConnectionError:
        pass


@pytest.mark.finding(8)
@pytest.mark.parametrize(
    "sent", [HEAD, HEAD + b"Content-Length: 99\r\n\r\n{"], ids=["half-a-head", "no-body"]
)
async def test_half_sent_requests_are_cut_off_while_pods_are_placed(
    scene: Scene, sent: bytes
) -> None:
    frugal, _ = await scene.offer(scene.machine(50, 150), scene.machine(50, 400))
    for address in (scene.greensched.extender_url, scene.greensched.explain_url):
        port = urlsplit(address).port
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(300)]
        try:
            for _, writer in opened:
                writer.write(sent)
            assert await scene.place(f"pod-{port}", cpu=0.1) == [frugal]
            async with asyncio.timeout(CLOSED_WITHIN_S):
                await asyncio.gather(*(until_closed(reader) for reader, _ in opened))
        finally:
            for _, writer in opened:
                writer.close()
