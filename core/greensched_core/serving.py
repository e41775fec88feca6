"""TLS with certificates that are read again when their files change, and uvicorn under our stop.

Each connection has limits: see connections.py.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn
from starlette.types import ASGIApp

from greensched_core.connections import MOST_CONNECTIONS, Connection, ConnectionGate, Refusal
from greensched_core.errors import BadInput
from greensched_core.open_files import connections_within_limit
from greensched_core.server_handshakes import Handshake

log = structlog.get_logger()

# Go's client keeps idle connections for 90 s. Whoever closes one first must be the caller: a POST
# that meets our close is not sent again, and an API server then lets the work run unheld.
KEEP_ALIVE_S = 120
REREAD_S = 5.0  # the kubelet itself takes up to a minute to renew a mounted Secret


@dataclass(frozen=True)
class Certificates:
    """The files of a TLS server; with `client_ca` only callers with its certificates are served."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return a server's context of what the files hold now.

        Raises BadInput when they are no certificate with its key. Where callers need a
        certificate, sessions are not resumed: a resumed one would not be checked again.
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
        """Return what changes when a file is replaced; raise OSError when one is gone."""
        paths = (self.cert, self.key, *((self.client_ca,) if self.client_ca else ()))
        return tuple(path.stat().st_mtime_ns for path in paths)


class Server(uvicorn.Server):
    """uvicorn that leaves signals to `__main__`, and callers only so much time."""

    def __init__(self, config: uvicorn.Config, refused: Callable[[Refusal], None]) -> None:
        """`refused` is called for each connection that is closed beyond a limit."""
        super().__init__(config)
        self._gate = ConnectionGate(refused, connections_within_limit(MOST_CONNECTIONS))

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop; raise BadInput when the port cannot be had."""
        own = sockets or [_listening(self.config.host, self.config.port)]
        try:
            await super().serve(own)
        finally:
            for each in own:  # uvicorn leaves them open when it is told to stop while it starts
                each.close()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; a connection enters the gate before its TLS handshake."""
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
        """End what is asked; whose handshake is not complete has asked nothing."""
        for one in [each for each in self._gate.inside if isinstance(each, Handshake)]:
            one.transport.abort()
        await super().shutdown(sockets)

    @property
    def port(self) -> int:
        """The port it listens on, once started."""
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
    """Return a server that is not started; raise BadInput when its certificates are wrong.

    `refused` is called for each connection that is closed beyond a limit of connections.py.
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


def _handing_over(fresh: ssl.SSLContext) -> Callable[..., None]:
    def hand_over(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        connection.context = fresh

    return hand_over


async def keep_certificates(
    context: ssl.SSLContext, certificates: Certificates, *, every_s: float = REREAD_S
) -> None:
    """Let new connections to `context` use the files anew when one changes; until cancelled.

    A context only ever adds authorities, so each change makes a new one, which a connection is
    given at its first message (also without a server name in it). Open connections go on. Files
    that do not fit together (a renewal half done) are refused and tried again, the old ones serve.
    """
    loaded = certificates.stamps()
    while True:
        await asyncio.sleep(every_s)
        try:
            stamps = certificates.stamps()
            if stamps == loaded:
                continue
            context.sni_callback = _handing_over(certificates.context())
        except Exception as fault:  # noqa: BLE001 - serving goes on with what it has
            log.warning(
                "the new certificate could not be loaded; the old one is still used",
                reason=str(fault),
            )
            continue
        loaded = stamps
        log.info("a new certificate was loaded", cert=str(certificates.cert))
