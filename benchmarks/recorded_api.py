"""Plays back lists and watch events of a real API server, the events at a constant rate.

At 500 pod changes a second a real API server uses more than one of two cores, so the extender's
latency would mostly depend on the rest. So the bytes are recorded from a real API server first,
and this small server sends them again over TLS, in a separate process.

    python -m benchmarks.recorded_api FOLDER PORT EVENTS_PER_S
"""

import asyncio
import json
import ssl
import sys
from collections.abc import Coroutine
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from greensched_core.api_paths import BOUND_AND_RUNNING, CRON_JOBS, JOBS, NODES, PODS
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.watched import GRID_SIGNALS_PATH

_PATHS = {
    NODES: "nodes",
    PODS: "pods",
    JOBS: "jobs",
    CRON_JOBS: "cronjobs",
    GRID_SIGNALS_PATH: "gridsignals",
}
_PAGE = 250


async def record(
    client: ApiClient, folder: Path, events: int, change_pods: Coroutine[None, None, None]
) -> None:
    """Record the lists that an extender requests, and `events` lines of its watch of pods.

    `change_pods` causes the events; it is cancelled once they are recorded.
    """
    for path, name in _PATHS.items():
        pages, parameters = [], _selecting(path) | {"limit": _PAGE}
        while True:
            pages.append(await client.get(path, parameters))
            meta = json.loads(pages[-1])["metadata"]
            if not meta.get("continue"):
                break
            parameters["continue"] = meta["continue"]
        if path == PODS:
            version = meta["resourceVersion"]
        for number, page in enumerate(pages):
            (folder / f"{name}-{number}.json").write_bytes(page)
    changing = asyncio.create_task(change_pods)
    lines: list[bytes] = []
    async with client.watch(PODS, version, field_selector=BOUND_AND_RUNNING) as watched:
        async for line in watched:
            if b'"BOOKMARK"' not in line[:40]:
                lines.append(line)
            if len(lines) == events:
                break
    changing.cancel()
    await asyncio.gather(changing, return_exceptions=True)
    (folder / "pods-events.jsonl").write_bytes(b"\n".join(lines) + b"\n")


def _selecting(path: str) -> dict[str, str | int]:
    return {"fieldSelector": BOUND_AND_RUNNING} if path == PODS else {}


class _Played:
    """The recording, and the number of events sent."""

    def __init__(self, folder: Path, events_per_s: float) -> None:
        self._pages = {
            path: _linked([page.read_bytes() for page in _in_order(folder, name)])
            for path, name in _PATHS.items()
        }
        self._events = (folder / "pods-events.jsonl").read_bytes().splitlines(keepends=True)
        self._events_per_s = events_per_s
        self.sent = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                url = urlsplit(head.split(b" ", 2)[1].decode())
                query = {key: values[-1] for key, values in parse_qs(url.query).items()}
                if query.get("watch"):
                    await self._watch(writer, with_events=url.path == PODS)
                else:
                    self._answer(writer, url.path, int(query.get("continue", "0")))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, writer: asyncio.StreamWriter, path: str, page: int) -> None:
        if path == "/sent":
            _reply(writer, b"%d" % self.sent)
        else:
            _reply(writer, self._pages[path][page])

    async def _watch(self, writer: asyncio.StreamWriter, *, with_events: bool) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )
        loop = asyncio.get_running_loop()
        start, number = loop.time(), 0
        while True:
            await asyncio.sleep(max(0.0, start + number / self._events_per_s - loop.time()))
            if with_events:
                line = self._events[number % len(self._events)]
                writer.write(b"%x\r\n%b\r\n" % (len(line), line))
                await writer.drain()
                self.sent += 1
            number += 1


def _linked(pages: list[bytes]) -> list[bytes]:
    """Return the pages with the number of the next page as `continue`."""
    linked = []
    for number, page in enumerate(pages):
        decoded = json.loads(page)
        decoded["metadata"]["continue"] = str(number + 1) if number + 1 < len(pages) else ""
        linked.append(json.dumps(decoded, separators=(",", ":")).encode())
    return linked


def _in_order(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(f"{name}-[0-9]*.json"), key=lambda path: int(path.stem.split("-")[1]))


def _reply(writer: asyncio.StreamWriter, body: bytes) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        % len(body)
    )
    writer.write(body)


async def _main(folder: Path, port: int, events_per_s: float) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    played = _Played(folder, events_per_s)
    server = await asyncio.start_server(played.serve, "127.0.0.1", port, ssl=context)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
