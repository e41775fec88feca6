"""Servers end when they are told to; one that ends by itself is a failure of its process."""

import asyncio
from collections.abc import Sequence

import pytest
from starlette.applications import Starlette

from greensched_core.errors import TaskEnded
from greensched_core.serving import Server, run_servers, server


async def started(servers: Sequence[Server]) -> None:
    async with asyncio.timeout(10):
        while not all(one.started for one in servers):
            await asyncio.sleep(0.01)


async def run_two(stop: asyncio.Event) -> tuple[Sequence[Server], asyncio.Task[None]]:
    """Return two servers that have started, and what runs them."""
    servers = [server(Starlette(), "127.0.0.1", 0) for _ in range(2)]
    running = asyncio.create_task(run_servers(servers, stop))
    await started(servers)
    return servers, running


async def test_servers_end_when_the_event_is_set() -> None:
    stop = asyncio.Event()
    servers, running = await run_two(stop)
    stop.set()
    async with asyncio.timeout(10):
        await running
    assert all(one.should_exit for one in servers)


async def test_a_server_that_ends_by_itself_ends_the_others_and_raises() -> None:
    servers, running = await run_two(asyncio.Event())
    servers[0].should_exit = True
    async with asyncio.timeout(10):
        with pytest.raises(TaskEnded, match="ended: the server on port"):
            await running
    assert servers[1].should_exit
