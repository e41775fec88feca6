"""The way to an API server by a kubeconfig: tokens, certificates, names of servers, proxies."""

import base64
import json
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubeconfig.login import read_login
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_testbed.certificates import Authority

Write = Callable[..., Path]
Serve = Callable[..., str]


class Answering(BaseHTTPRequestHandler):
    """Answers with what was asked: the path and the login."""

    def do_GET(self) -> None:
        """Answer."""
        told = {"path": self.path, "login": self.headers.get("Authorization")}
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def serve(authority: Authority) -> Iterator[Serve]:
    """Serve over TLS by a certificate for these hosts, or without TLS for none; give the address.

    `asks`: callers need a certificate of the authority.
    """
    servers: list[ThreadingHTTPServer] = []

    def served(*hosts: str, asks: bool = False) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
        servers.append(server)
        if hosts:
            pair = authority.issue_server("-".join(hosts), hosts)
            context = ssl.create_default_context(
                ssl.Purpose.CLIENT_AUTH, cafile=authority.certificate_file
            )
            context.verify_mode = ssl.CERT_REQUIRED if asks else ssl.CERT_NONE
            context.load_cert_chain(pair.certificate, pair.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"{'https' if hosts else 'http'}://127.0.0.1:{server.server_port}"

    yield served
    for server in servers:
        server.shutdown()
        server.server_close()


async def answer(kubeconfig: Path) -> dict[str, Any]:
    async with ApiClient(ApiAccess.from_kubeconfig(kubeconfig), timeout_s=5.0) as client:
        found: dict[str, Any] = json.loads(await client.get("/version"))
        return found


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


async def test_a_token_is_sent_over_tls_that_the_clusters_authority_vouches_for(
    write: Write, serve: Serve, authority: Authority
) -> None:
    trusted = {"certificate-authority-data": encoded(authority.certificate_file)}
    url = serve("127.0.0.1")
    told = await answer(write(user={"token": "t"}, cluster={"server": url, **trusted}))
    assert told["login"] == "Bearer t"
    with pytest.raises(ApiUnavailable, match="certificate"):
        await answer(write(cluster={"server": url}))
    lax = {"server": url, "insecure-skip-tls-verify": True}
    assert (await answer(write(cluster=lax)))["login"] is None


@pytest.mark.parametrize("are_files", [False, True])
async def test_a_client_certificate_is_shown(
    write: Write, serve: Serve, authority: Authority, are_files: bool
) -> None:
    pair = authority.issue_client("caller", "caller")
    data = {"client-certificate-data": encoded(pair.certificate),
            "client-key-data": encoded(pair.key)}  # fmt: skip
    files = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    cluster = {"server": serve("127.0.0.1", asks=True),
               "certificate-authority": str(authority.certificate_file)}  # fmt: skip
    path = write(user=files if are_files else data, cluster=cluster)
    assert (await answer(path))["path"] == "/version"
    with pytest.raises(ApiUnavailable):
        await answer(write(cluster=cluster))


async def test_a_plugins_certificate_is_shown(
    write: Write, serve: Serve, authority: Authority, tmp_path: Path
) -> None:
    pair = authority.issue_client("plugged", "plugged")
    status = {"clientCertificateData": pair.certificate.read_text(),
              "clientKeyData": pair.key.read_text()}  # fmt: skip
    (tmp_path / "printed").write_text(json.dumps({"status": status}))
    plugin = {"command": "cat", "args": [str(tmp_path / "printed")], "interactiveMode": "Never"}
    cluster = {"server": serve("127.0.0.1", asks=True),
               "certificate-authority": str(authority.certificate_file)}  # fmt: skip
    assert (await answer(write(user={"exec": plugin}, cluster=cluster)))["path"] == "/version"


@pytest.mark.parametrize("is_watch", [False, True])
async def test_the_name_that_the_server_is_verified_by_may_be_another(
    write: Write, serve: Serve, authority: Authority, is_watch: bool
) -> None:
    cluster = {"server": serve("inner.example"),
               "certificate-authority": str(authority.certificate_file)}  # fmt: skip

    async def ask(path: Path) -> None:
        async with ApiClient(ApiAccess.from_kubeconfig(path), timeout_s=5.0) as client:
            if is_watch:
                async with client.watch("/version", "1"):
                    return
            await client.get("/version")

    await ask(write(cluster={**cluster, "tls-server-name": "inner.example"}))
    for wrong in ({}, {"tls-server-name": "other.example"}):
        with pytest.raises(ApiUnavailable, match="certificate|Hostname"):
            await ask(write(cluster={**cluster, **wrong}))


async def test_a_token_file_goes_before_a_token(write: Write, serve: Serve) -> None:
    path = write(user={"token": "t", "tokenFile": "token"}, cluster={"server": serve()})
    (path.parent / "token").write_text("of the file\n")
    assert (await answer(path))["login"] == "Bearer of the file"


async def test_requests_go_by_the_clusters_proxy(write: Write, serve: Serve) -> None:
    cluster = {"server": "http://nowhere.invalid", "proxy-url": serve()}
    assert (await answer(write(cluster=cluster)))["path"] == "http://nowhere.invalid/version"


@pytest.mark.parametrize(
    ("server", "proxy"),
    [
        pytest.param("https://away.example:6443", "http://proxy:3128", id="away"),
        pytest.param("https://127.0.0.1:6443", None, id="here"),
        pytest.param("https://localhost:6443", None, id="here-by-name"),
        pytest.param("https://spared.example", None, id="spared"),
    ],
)
def test_without_one_the_environments_proxy_counts_as_for_kubectl(
    write: Write, monkeypatch: pytest.MonkeyPatch, server: str, proxy: str | None
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "spared.example")
    assert read_login(write(cluster={"server": server}), None).proxy == proxy


@pytest.mark.parametrize(
    ("cluster", "user", "told"),
    [
        pytest.param({"certificate-authority": "no.crt"}, {}, "no.crt does not exist", id="no-ca"),
        pytest.param({"proxy-url": "socks5://p:1"}, {}, "only http:// and https://", id="socks"),
        pytest.param({}, {"client-certificate": "no.crt"}, "no.crt does not exist", id="no-cert"),
        pytest.param(
            {}, {"username": "u", "password": "p"}, "no longer accepts since 1.19", id="password"
        ),
    ],
)
def test_what_cannot_be_used_is_a_sentence(
    write: Write, cluster: dict[str, Any], user: dict[str, Any], told: str
) -> None:
    with pytest.raises(BadInput, match=rf"^kubeconfig .*here\.yaml: .*{told}"):
        read_login(write(cluster=cluster, user=user), None)


def provider(token: str) -> dict[str, Any]:
    config = {"idp-issuer-url": "https://issuer.invalid", "client-id": "c", "id-token": token}
    return {"auth-provider": {"name": "oidc", "config": config}}


def test_a_login_by_an_auth_provider_is_the_official_clients(write: Write) -> None:
    parts = (base64.urlsafe_b64encode(text).decode().rstrip("=") for text in (b"{}", b'{"a":1}'))
    token = ".".join((*parts, "c2lnbmVk"))
    assert read_login(write(user=provider(token)), None).token() == token
    with pytest.raises(BadInput, match="auth-provider oidc gives no token: log in again"):
        read_login(write(user=provider("no token")), None)


def test_without_it_the_extra_that_brings_it_is_named(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with pytest.raises(BadInput, match="by an auth-provider, which needs the extra `oidc`$"):
        read_login(write(user=provider("t")), None)
