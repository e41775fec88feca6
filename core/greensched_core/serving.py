"""A uvicorn server that we stop ourselves; its TLS certificates are reloaded when files change.

Connections have limits: see connections.py.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn
from starlette.types import ASGIApp

from greensched_core.connections import MOST_CONNECTIONS, Connection, ConnectionGate, Refusal
from greensched_core.errors import BadInput, TaskEnded
from greensched_core.open_files import connections_within_limit
from greensched_core.server_handshakes import Handshake

log = structlog.get_logger()

# Go's client keeps idle connections for 90 s. The caller must close first: a POST that meets our
# close is not sent again, and the API server then admits the work without a hold.
KEEP_ALIVE_S = 120
REREAD_S = 5.0  # the kubelet takes up to a minute to update a mounted Secret


@dataclass(frozen=True)
class Certificates:
    """The files of a TLS server; with `client_ca` callers need a certificate of that authority."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return a server context from the current files.

        Raises BadInput if they are not a certificate with its key. If callers need a
        certificate, sessions are not resumed, since a resumed one would not be checked again.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.cert, self.key)
            if self.client_ca:
                context.load_verify_locations(self.client_ca)
                context.verify_mode = ssl.CERT_REQUIRED
                context.minimum_version = ssl.TLSVersion.TLSv1_3
                context.num_tickets = 0
        except (OSError, ssl.SSLError) as fault:
            raise BadInput(f"TLS: {self.cert}, {self.key}, {self.client_ca or '-'}: {fault}") from (
                fault
            )
        return context

    def stamps(self) -> tuple[int, ...]:
        """Return the files' modification times; raise OSError if a file is missing."""
        paths = (self.cert, self.key, *((self.client_ca,) if self.client_ca else ()))
        return tuple(path.stat().st_mtime_ns for path in paths)


class Server(uvicorn.Server):
    """A uvicorn server that leaves signals to `__main__` and limits its connections."""

    def __init__(self, config: uvicorn.Config, refused: Callable[[Refusal], None]) -> None:
        """`refused` is called for each connection that a limit closes."""
        super().__init__(config)
        self._gate = ConnectionGate(refused, connections_within_limit(MOST_CONNECTIONS))

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture no signals; `__main__` handles them."""
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until stopped; raise BadInput if the port is not available."""
        own = sockets or [_listening(self.config.host, self.config.port)]
        try:
            await super().serve(own)
        finally:
            for each in own:  # uvicorn leaves them open if it is stopped during its start
                each.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to serve; a connection enters the gate before its TLS handshake."""
        loop = asyncio.get_running_loop()
        config, state, gate = self.config, self.server_state, self._gate

        def connection() -> Connection:
            return Connection(config, state, self.lifespan.state, loop, gate=gate)

        def accepted() -> Connection | Handshake:
            return Handshake(config.ssl, connection, gate) if config.ssl else connection()

        self.servers = [
            await loop.create_server(accepted, sock=one, backlog=config.backlog)
            for one in sockets or ()
        ]
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish open requests; abort connections whose handshake is not complete."""
        for one in [each for each in self._gate.inside if isinstance(each, Handshake)]:
            one.transport.abort()
        await super().shutdown(sockets)

    @property
    def port(self) -> int:
        """The port that the started server listens on."""
        return int(self.servers[0].sockets[0].getsockname()[1])


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as fault:
        raise BadInput(
            f"cannot listen on {host} port {port}: {fault.strerror or fault}; stop what uses "
            "the port, or set another (listen_port, explain_port)"
        ) from fault


def _uncounted(_: Refusal) -> None:
    """Count nothing."""


def server(
    app: ASGIApp,
    host: str,
    port: int,
    certificates: Certificates | None = None,
    refused: Callable[[Refusal], None] = _uncounted,
) -> Server:
    """Return a server that is not started; raise BadInput if its certificates are wrong.

    `refused` is called for each connection that a limit of connections.py closes.
    """
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        server_header=False,
        log_config=None,
        log_level="warning",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=3,
    )
    if certificates is not None:
        certificates.context()
        config.ssl_certfile, config.ssl_keyfile = str(certificates.cert), str(certificates.key)
    config.load()
    if certificates is not None:
        config.ssl = certificates.context()
    return Server(config, refused)


async def run_servers(servers: Sequence[Server], *until: asyncio.Event) -> None:
    """Serve until an event is set, then end all servers.

    Raises a server's exception, or TaskEnded if a server ended before any event was set.
    """
    serving = [asyncio.create_task(one.serve()) for one in servers]
    stopping = asyncio.create_task(until_set(*until))
    unasked: list[Server] = []
    try:
        await asyncio.wait([*serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        if not any(each.is_set() for each in until):
            unasked = [one for one, task in zip(servers, serving, strict=True) if task.done()]
    finally:
        for one in servers:
            one.should_exit = True
        ended = await asyncio.gather(*serving, return_exceptions=True)
        stopping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await stopping
    for fault in ended:
        if isinstance(fault, BaseException):
            raise fault
    if unasked:
        ports = ", ".join(str(one.config.port) for one in unasked)
        raise TaskEnded(f"ended: the server on port {ports}")


async def until_set(*events: asyncio.Event) -> None:
    """Wait until one of the events is set."""
    waiting = [asyncio.create_task(each.wait()) for each in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


def _handing_over(fresh: ssl.SSLContext) -> Callable[..., None]:
    def hand_over(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = fresh

    return hand_over


async def keep_certificates(
    context: ssl.SSLContext, certificates: Certificates, *, every_s: float = REREAD_S
) -> None:
    """Reload the files for new connections to `context` when one changes; run until cancelled.

    A context can only add authorities, so each change creates a new one. A connection gets it at
    its first message, even without a server name. Open connections go on. Files that do not match
    (a renewal half done) are tried again; until then the old certificates serve.
    """
    loaded = certificates.stamps()
    while True:
        await asyncio.sleep(every_s)
        try:
            stamps = certificates.stamps()
            if stamps == loaded:
                continue
            context.sni_callback = _handing_over(certificates.context())
        except Exception as fault:  # noqa: BLE001 - the server goes on with the old certificate
            log.warning(
                "the new certificate could not be loaded; the old one is still used",
                reason=str(fault),
            )
            continue
        loaded = stamps
        log.info("a new certificate was loaded", cert=str(certificates.cert))
