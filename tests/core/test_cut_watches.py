"""Watches over TLS that are cut, by a server that never takes leave."""

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from pathlib import Path

import pytest

from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_testbed.certificates import Authority

PATIENCE_S = 30.0


class MuteServer:
    """Takes one request, answers with some bytes, and then keeps still until it is told to end."""

    def __init__(self, folder: Path, answer: bytes) -> None:
        authority = Authority(folder)
        pair = authority.issue_server("api", ("127.0.0.1",))
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pair.certificate, pair.key)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._answer = answer
        self.answered, self.ended = threading.Event(), threading.Event()
        trust = ssl.create_default_context(cafile=authority.certificate_file)
        self.access = ApiAccess(f"https://127.0.0.1:{self._socket.getsockname()[1]}", trust)

    def serve(self) -> None:
        """Serve one connection."""
        with self._socket, self._socket.accept()[0] as plain:
            with self._context.wrap_socket(plain, server_side=True) as connection:
                connection.recv(65_536)
                connection.sendall(self._answer)
                self.answered.set()
                self.ended.wait(PATIENCE_S)


async def cut(server: MuteServer, *, amid_events: bool) -> None:
    """Watch, and stop as soon as the server has answered."""
    read = asyncio.Event()

    async def follow() -> None:
        async with client.watch("/api/v1/pods", "1") as events:
            async for _ in events:
                read.set()

    async with ApiClient(server.access) as client, asyncio.timeout(PATIENCE_S):
        watching = asyncio.create_task(follow())
        await asyncio.to_thread(server.answered.wait, PATIENCE_S)
        if amid_events:
            await read.wait()
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@pytest.mark.parametrize(("answer", "amid_events"), [
    pytest.param(b"", False, id="before-its-answer"),
    pytest.param(b"HTTP/1.1 200 OK\r\n\r\n{}\n", True, id="amid-its-events"),
])  # fmt: skip
def test_a_watch_that_is_cut_leaves_no_socket_open_when_the_loop_ends(
    tmp_path: Path, answer: bytes, amid_events: bool
) -> None:
    server = MuteServer(tmp_path, answer)
    serving = threading.Thread(target=server.serve)
    serving.start()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(cut(server, amid_events=amid_events))
        gc.collect()
    server.ended.set()
    serving.join()
    assert [str(each.message) for each in told] == []
