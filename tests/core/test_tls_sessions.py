"""What a TLS server promises of its callers' certificates, without any socket."""

import os
import ssl
from pathlib import Path

import pytest

from greensched_core.serving import Certificates
from greensched_testbed.certificates import Authority

NAME = "extender.test"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """An authority of server and callers."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def plain(authority: Authority) -> Certificates:
    """A server that asks for no certificate."""
    pair = authority.issue_server("server", (NAME,))
    return Certificates(pair.certificate, pair.key)


@pytest.fixture(scope="module")
def asking(authority: Authority, plain: Certificates) -> Certificates:
    """A server that asks its callers for a certificate."""
    return Certificates(plain.cert, plain.key, client_ca=authority.certificate_file)


@pytest.fixture
def caller(authority: Authority) -> ssl.SSLContext:
    """A caller with a certificate."""
    context = ssl.create_default_context(cafile=authority.certificate_file)
    pair = authority.issue_client("caller", "caller")
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def connect(
    server: ssl.SSLContext, client: ssl.SSLContext, session: ssl.SSLSession | None = None
) -> ssl.SSLObject:
    """Shake hands in memory, let the server say a word, return the client's side."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    calling = client.wrap_bio(to_client, to_server, server_hostname=NAME, session=session)
    called = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = {calling, called}
    while waiting:
        for side in tuple(waiting):
            try:
                side.do_handshake()
                waiting.discard(side)
            except ssl.SSLWantReadError:
                pass  # it is the other's turn
    called.write(b"ok")
    assert calling.read() == b"ok"
    return calling


def test_a_caller_with_a_certificate_is_checked_anew_each_time(
    plain: Certificates, asking: Certificates, caller: ssl.SSLContext
) -> None:
    reused = []
    for certificates in (plain, asking):
        server = certificates.context()
        session = connect(server, caller).session
        reused.append(connect(server, caller, session).session_reused)
    assert reused == [True, False], "a session is resumed only where no certificate was asked for"


def test_only_tls_1_3_is_spoken_where_a_certificate_is_asked_for(
    plain: Certificates, asking: Certificates, caller: ssl.SSLContext
) -> None:
    caller.maximum_version = ssl.TLSVersion.TLSv1_2  # its sessions can be resumed without tickets
    assert connect(plain.context(), caller).version() == "TLSv1.2"
    with pytest.raises(ssl.SSLError, match="UNSUPPORTED_PROTOCOL"):
        connect(asking.context(), caller)


@pytest.mark.parametrize("renewed", ["cert", "key", "client_ca"])
def test_each_file_that_is_replaced_is_noticed(tmp_path: Path, renewed: str) -> None:
    files = {name: tmp_path / name for name in ("cert", "key", "client_ca")}
    for file in files.values():
        file.touch()
    certificates = Certificates(**files)
    before = certificates.stamps()
    newer_ns = files[renewed].stat().st_mtime_ns + 1
    os.utime(files[renewed], ns=(newer_ns, newer_ns))
    assert certificates.stamps() != before
