"""kopf ends while the API server takes no leave: nothing of its connections is left."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from greensched_operator.controller.handlers import JobEvents
from greensched_operator.controller.job_watch import run_kopf

if TYPE_CHECKING:
    from greensched_core.kubernetes_api import ApiAccess
    from tests.operator.conftest import Place

PATIENCE_S = 30.0


class Valve:
    """A TCP proxy before a server: shut, it hands on nothing more and closes nothing."""

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url).hostname or "", urlsplit(url).port or 443
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open = [self._listening]
        self.is_shut = False

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"https://127.0.0.1:{self._listening.getsockname()[1]}"

    def serve(self) -> None:
        """Take connections until closed."""
        with suppress(OSError):
            while True:
                here, there = self._listening.accept()[0], socket.create_connection(self._to)
                self._open += [here, there]
                for source, sink in ((here, there), (there, here)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while (data := source.recv(65_536)) and not self.is_shut:
                sink.sendall(data)

    def cut(self) -> None:
        """Cut all connections, and take new ones."""
        self._close(self._open[1:])

    def close(self) -> None:
        """Close all connections, and take no more."""
        self._close(self._open)

    def _close(self, sockets: Sequence[socket.socket]) -> None:
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class FirstEvent(JobEvents):
    """Tells when kopf has brought the first event."""

    def __init__(self) -> None:
        self.came = asyncio.Event()

    def take(self, event: Mapping[str, Any]) -> None:
        """Take in one event."""
        self.came.set()


@pytest.fixture
def valve(api_access: ApiAccess) -> Iterator[Valve]:
    """A valve before the API server."""
    made = Valve(api_access.base_url)
    serving = threading.Thread(target=made.serve)
    serving.start()
    yield made
    made.close()
    serving.join()


@contextmanager
def no_resource_warnings() -> Iterator[None]:
    """Fail where something was left to the collector that should have been closed."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(each.message) for each in told] == []


async def test_kopf_leaves_no_socket_behind_though_the_api_server_is_mute(
    place: Place, valve: Valve
) -> None:
    await place.create_job("one")
    events = FirstEvent()
    gc.collect()
    with no_resource_warnings():
        running = asyncio.create_task(
            run_kopf(events, replace(place.access, base_url=valve.url), "test")
        )
        async with asyncio.timeout(PATIENCE_S):
            await events.came.wait()
        valve.is_shut = True
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        del running
