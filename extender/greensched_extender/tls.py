"""TLS with certificates that are read again when their files change, and uvicorn under our stop."""

import asyncio
import ssl
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog
import uvicorn
from starlette.types import ASGIApp

from greensched_core.errors import BadInput

log = structlog.get_logger()

REREAD_S = 5.0  # the kubelet itself takes up to a minute to renew a mounted Secret


@dataclass(frozen=True)
class Certificates:
    """The files of a TLS server; with `client_ca` only callers with its certificates are served."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def check(self) -> None:
        """Raise BadInput when the files are no certificate with its key."""
        try:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.cert, self.key)
            if self.client_ca:
                context.load_verify_locations(self.client_ca)
        except (OSError, ssl.SSLError) as fault:
            raise BadInput(f"TLS: {self.cert}, {self.key}, {self.client_ca or '-'}: {fault}") from (
                fault
            )

    def stamps(self) -> tuple[int, ...]:
        """Return what changes when a file is replaced; raise OSError when one is gone."""
        paths = (self.cert, self.key, *((self.client_ca,) if self.client_ca else ()))
        return tuple(path.stat().st_mtime_ns for path in paths)


class Server(uvicorn.Server):
    """uvicorn that leaves signals to `__main__`."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    @property
    def port(self) -> int:
        """The port it listens on, once started."""
        return int(self.servers[0].sockets[0].getsockname()[1])


def server(app: ASGIApp, host: str, port: int, certificates: Certificates | None = None) -> Server:
    """Return a server that is not started; raise BadInput when its certificates are wrong."""
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
        timeout_keep_alive=75,  # Go's client keeps idle connections for 90 s
        timeout_graceful_shutdown=3,
    )
    if certificates is not None:
        certificates.check()
        config.ssl_certfile, config.ssl_keyfile = str(certificates.cert), str(certificates.key)
        config.ssl_version = ssl.PROTOCOL_TLS_SERVER
        if certificates.client_ca is not None:
            config.ssl_ca_certs = str(certificates.client_ca)
            config.ssl_cert_reqs = ssl.CERT_REQUIRED
    config.load()
    if config.ssl is not None:
        config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
    return Server(config)


async def keep_certificates(
    context: ssl.SSLContext, certificates: Certificates, *, every_s: float = REREAD_S
) -> None:
    """Load the certificate into `context` again whenever a file changes; runs until cancelled.

    Open connections go on; new ones get the new certificate. Files that do not fit together (a
    renewal half done) are refused and tried again, the old certificate serves on.
    """
    loaded = certificates.stamps()
    while True:
        await asyncio.sleep(every_s)
        try:
            stamps = certificates.stamps()
            if stamps == loaded:
                continue
            certificates.check()
            context.load_cert_chain(certificates.cert, certificates.key)
            if certificates.client_ca is not None:
                context.load_verify_locations(certificates.client_ca)
        except (BadInput, OSError, ssl.SSLError) as fault:
            log.warning("certificate not taken up, the old one serves on", reason=str(fault))
            continue
        loaded = stamps
        log.info("certificate taken up", cert=str(certificates.cert))
