"""A real uvicorn server with real certificates."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from greensched_core.errors import BadInput
from greensched_core.serving import Certificates, keep_certificates, server

Issue = Callable[[str], tuple[Path, Path]]


@pytest.fixture
def issue(tmp_path: Path) -> Issue:
    """Write a self-signed certificate for 127.0.0.1 and its key; again, a new one."""

    def write(name: str) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        now = datetime.now(UTC)
        address = x509.IPAddress(ip_address("127.0.0.1"))
        certificate = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([address]), critical=False)
            .sign(key, hashes.SHA256())
        )
        cert_file, key_file = tmp_path / f"{name}.crt", tmp_path / f"{name}.key"
        cert_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_file.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return cert_file, key_file

    return write


@asynccontextmanager
async def serving(certificates: Certificates, *, every_s: float = 60.0) -> AsyncIterator[str]:
    """Serve `ok` over TLS and give the address."""

    async def ok(request: Request) -> Response:
        return PlainTextResponse("ok")

    one = server(Starlette(routes=[Route("/", ok)]), "127.0.0.1", 0, certificates)
    task = asyncio.create_task(one.serve())
    while not one.started:
        await asyncio.sleep(0.005)
    assert one.config.ssl is not None
    keeping = asyncio.create_task(keep_certificates(one.config.ssl, certificates, every_s=every_s))
    try:
        yield f"https://127.0.0.1:{one.port}/"
    finally:
        keeping.cancel()
        one.should_exit = True
        await asyncio.wait([task, keeping])


async def ask(url: str, trust: Path, own: tuple[Path, Path] | None = None) -> str:
    context = ssl.create_default_context(cafile=trust)
    if own is not None:
        context.load_cert_chain(*own)
    async with httpx.AsyncClient(verify=context, trust_env=False) as client:
        return (await client.get(url)).text


async def test_a_client_that_trusts_the_certificate_is_served(issue: Issue) -> None:
    cert, key = issue("server")
    async with serving(Certificates(cert, key)) as url:
        assert await ask(url, cert) == "ok"


async def test_only_callers_with_a_certificate_are_served_where_one_is_asked_for(
    issue: Issue,
) -> None:
    cert, key = issue("server")
    client, stranger = issue("client"), issue("stranger")
    async with serving(Certificates(cert, key, client_ca=client[0])) as url:
        assert await ask(url, cert, client) == "ok"
        for own in (None, stranger):
            with pytest.raises((httpx.TransportError, ssl.SSLError)):
                await ask(url, cert, own)


async def test_a_renewed_certificate_is_taken_up_without_a_restart(issue: Issue) -> None:
    cert, key = issue("server")
    async with serving(Certificates(cert, key), every_s=0.02) as url:
        assert await ask(url, cert) == "ok"
        cert.write_text("half written")
        await asyncio.sleep(0.1)
        issue("server")
        async with asyncio.timeout(20):
            while True:
                try:
                    assert await ask(url, cert) == "ok"
                    break
                except httpx.ConnectError:
                    await asyncio.sleep(0.02)


async def test_an_authority_that_is_withdrawn_is_refused(issue: Issue, tmp_path: Path) -> None:
    cert, key = issue("server")
    old, new = issue("old-client"), issue("new-client")
    authorities = tmp_path / "authorities.crt"
    authorities.write_bytes(old[0].read_bytes())
    async with serving(Certificates(cert, key, authorities), every_s=0.02) as url:
        assert await ask(url, cert, old) == "ok"
        authorities.write_bytes(new[0].read_bytes())
        async with asyncio.timeout(20):
            while True:
                try:
                    await ask(url, cert, old)
                    await asyncio.sleep(0.02)
                except (httpx.TransportError, ssl.SSLError):
                    break
        assert await ask(url, cert, new) == "ok"
        for own in (None, old):
            with pytest.raises((httpx.TransportError, ssl.SSLError)):
                await ask(url, cert, own)


async def test_a_port_that_is_taken_is_reported_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BadInput, match=f"cannot listen on 127.0.0.1 port {port}: Address"):
            await server(Starlette(), "127.0.0.1", port).serve()


def test_an_idle_connection_is_closed_by_its_caller_first() -> None:
    go_client_keeps_s = 90  # IdleConnTimeout of k8s.io/apimachinery's and net/http's transports
    assert server(Starlette(), "127.0.0.1", 0).config.timeout_keep_alive > go_client_keeps_s + 10


def test_files_that_do_not_belong_together_are_refused_at_the_start(issue: Issue) -> None:
    cert, _ = issue("server")
    _, other_key = issue("other")
    with pytest.raises(BadInput, match="TLS"):
        Certificates(cert, other_key).context()
    with pytest.raises(BadInput, match="TLS"):
        Certificates(cert, cert.with_name("absent")).context()
