"""Access to the API server: raw JSON over HTTP, in a cluster or by kubeconfig.

Bodies stay bytes, so that a caller decodes only the fields it reads. Inside a cluster a service
account's folder is enough; outside, `kubeconfig` reads the server's address and the login.
"""

import os
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
import httpx
import msgspec

from greensched_core.errors import ApiUnavailable, BadInput, ResourceExpired
from greensched_core.handshakes import close_cancelled

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TOKEN_REREAD_S = 60.0  # kubelet rotates a bound token at 80 % of its hour
_CONNECT_TIMEOUT_S = 30.0
_PAGE = 250  # objects: 4 MB of nodes at 15 kB, so that listing does not set the peak of memory

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"


@dataclass(frozen=True)
class ApiAccess:
    """The address of the API server, and our credentials."""

    base_url: str
    verify: ssl.SSLContext
    bearer_token: Callable[[], str | None] = lambda: None  # called before each request
    proxy: str | None = None  # URL of the HTTP proxy to the server

    @classmethod
    def in_cluster(cls, directory: Path = SERVICE_ACCOUNT_DIR) -> Self:
        """Return the access that Kubernetes gives every pod; raise BadInput outside a cluster."""
        host = os.environ.get("KUBERNETES_SERVICE_HOST")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        token, authority = directory / "token", directory / "ca.crt"
        if not host or not token.exists() or not authority.exists():
            raise BadInput(
                f"not in a cluster: KUBERNETES_SERVICE_HOST is {host or 'unset'} and "
                f"{directory} {'exists' if directory.exists() else 'does not exist'}; "
                "name a kubeconfig instead"
            )
        address = f"[{host}]" if ":" in host else host
        try:
            verify = ssl.create_default_context(cafile=authority)
        except OSError as fault:  # ssl.SSLError is one
            raise BadInput(f"{authority} holds no certificate: {fault}") from fault
        return cls(f"https://{address}:{port}", verify, _TokenFile(token).read)

    @classmethod
    def from_kubeconfig(cls, path: Path | None = None, context: str | None = None) -> Self:
        """Return the access that a kubeconfig names; raise BadInput when it cannot be read.

        Without `path`: $KUBECONFIG, else ~/.kube/config, as kubectl does.
        """
        from greensched_core.kubeconfig.login import read_login  # needed only on a user's machine

        login = read_login(path, context)
        token = login.token if login.token_file is None else _TokenFile(login.token_file).read
        return cls(login.server, login.verify, token, login.proxy)


class _TokenFile:
    """A token file that is read again before the token expires."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = ""
        self._read_at = float("-inf")

    def read(self) -> str:
        now = time.monotonic()
        if now - self._read_at > _TOKEN_REREAD_S:
            try:
                self._token = self._path.read_text().strip()
            except OSError as fault:
                if not self._token:
                    raise ApiUnavailable(f"token {self._path}: {fault}") from fault
                return self._token  # still valid for a while; the next call reads again
            self._read_at = now
        return self._token


class _BearerAuth(httpx.Auth):
    def __init__(self, bearer_token: Callable[[], str | None]) -> None:
        self._bearer_token = bearer_token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        token = self._bearer_token()
        if token:
            request.headers["Authorization"] = f"Bearer {token}"
        yield request


class _ListMeta(msgspec.Struct):
    resourceVersion: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct):
    """One page of a list; the items are undecoded JSON."""

    metadata: _ListMeta
    items: list[msgspec.Raw]


_decode_page = msgspec.json.Decoder(ListPage).decode
QueryParameters = Mapping[str, str | int]


class ApiClient:
    """Reads and writes objects as raw JSON.

    Every method raises ApiUnavailable when the server does not answer or answers with an error,
    and ResourceExpired when it answers 410.
    """

    def __init__(
        self,
        access: ApiAccess,
        *,
        timeout_s: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`transport` replaces the network, as httpx.MockTransport does in tests."""
        self._access = access
        self._streams: aiohttp.ClientSession | None = None
        self._http = httpx.AsyncClient(
            transport=transport,
            base_url=access.base_url,
            verify=access.verify,
            proxy=access.proxy,
            auth=_BearerAuth(access.bearer_token),
            timeout=timeout_s,
            # Compression costs the server more than the wire saves inside one cluster.
            headers={"Accept": "application/json", "Accept-Encoding": "identity"},
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=32),
            trust_env=False,
            event_hooks={"request": [close_cancelled]},
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()
        if self._streams is not None:
            await self._streams.close()

    async def get(self, path: str, parameters: QueryParameters | None = None) -> bytes:
        """Return the body at `path`."""
        return await self._send("GET", path, parameters=parameters)

    async def create(self, path: str, body: bytes) -> bytes:
        """Create an object under `path` and return it as the server stored it."""
        return await self._send("POST", path, body=body)

    async def patch(self, path: str, body: bytes, media_type: str = MERGE_PATCH) -> bytes:
        """Patch the object at `path` and return it as the server stored it."""
        return await self._send("PATCH", path, body=body, media_type=media_type)

    async def delete(self, path: str, parameters: QueryParameters | None = None) -> bytes:
        """Delete the object or the whole collection at `path`."""
        return await self._send("DELETE", path, parameters=parameters)

    async def pages(
        self, path: str, *, limit: int = _PAGE, field_selector: str = ""
    ) -> AsyncGenerator[ListPage]:
        """Yield the pages of the list at `path`."""
        parameters: dict[str, str | int] = {"limit": limit, **_selecting(field_selector)}
        while True:
            try:
                page = _decode_page(await self.get(path, parameters))
            except (msgspec.DecodeError, UnicodeDecodeError) as fault:  # such as a proxy's page
                raise ApiUnavailable(f"GET {path}: the answer is not a list: {fault}") from fault
            yield page
            if not page.metadata.continue_:
                return
            parameters["continue"] = page.metadata.continue_

    @asynccontextmanager
    async def watch(
        self,
        path: str,
        resource_version: str,
        *,
        field_selector: str = "",
        timeout_s: int = 290,
        silence_s: float = 120.0,
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Open a watch and give its events, one JSON line each; the server ends it at `timeout_s`.

        Bookmarks arrive about once a minute, so `silence_s` without any byte means that the
        connection is dead.
        """
        parameters: QueryParameters = {
            "watch": "1",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": timeout_s,
            **_selecting(field_selector),
        }
        try:
            async with self._streaming().get(
                self._access.base_url.rstrip("/") + path,
                params=dict(parameters),
                headers=self._stream_headers(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=silence_s
                ),
            ) as response:
                if response.status != 200:
                    raise _refusal("GET", path, response.status, await response.read())
                yield _lines(response.content.iter_any())
        except (aiohttp.ClientError, TimeoutError) as fault:
            raise ApiUnavailable(f"watch {path}: {_reason(fault)}") from fault

    def _streaming(self) -> aiohttp.ClientSession:
        """Return the session for watches, created inside the running loop.

        Watches use aiohttp, whose C parser passes on all data that has arrived at once. At 500
        events a second httpx takes 0.2 ms of CPU for each, two thirds of the cost of an event.
        """
        if self._streams is None:
            self._streams = streaming_session(self._access)
        return self._streams

    def _stream_headers(self) -> dict[str, str]:
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        token = self._access.bearer_token()
        return headers | ({"Authorization": f"Bearer {token}"} if token else {})

    async def _send(
        self,
        method: str,
        path: str,
        *,
        parameters: QueryParameters | None = None,
        body: bytes | None = None,
        media_type: str = "application/json",
    ) -> bytes:
        headers = {"Content-Type": media_type} if body is not None else None
        try:
            response = await self._http.request(
                method,
                path,
                params=dict(parameters) if parameters else None,
                content=body,
                headers=headers,
            )
        except (httpx.HTTPError, ssl.SSLError) as fault:  # httpx does not wrap a server's TLS alert
            server = f"the API server {self._access.base_url} does not answer"
            raise ApiUnavailable(f"{server}: {_reason(fault)} ({method} {path})") from fault
        if response.status_code >= 300:
            raise _refusal(method, path, response.status_code, response.content)
        return response.content


def streaming_session(access: ApiAccess, *traces: aiohttp.TraceConfig) -> aiohttp.ClientSession:
    """Return a session for watches; call it inside the running loop.

    Closing it leaves no socket open. The caller adds the token; `traces` see its requests.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(ssl=access.verify),
        proxy=access.proxy,
        response_class=_Stream,
        trace_configs=list(traces),
        read_bufsize=2**20,
    )


class _Stream(aiohttp.ClientResponse):
    """The response to a watch; closing it before its end leaves no connection open.

    aiohttp ends such a connection over TLS (close_notify) without waiting, so the socket stays
    open if the event loop ends first.
    """

    def close(self) -> None:
        """Abort the connection, unless it was released."""
        self._abort()
        super().close()

    def release(self) -> Any:
        """Release the connection; abort it if the response is not complete."""
        self._abort()
        return super().release()

    def _abort(self) -> None:
        # `connection` is None once aiohttp has read the whole response.
        if self.connection is not None and self.connection.transport is not None:
            self.connection.transport.abort()


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line


def _selecting(field_selector: str) -> dict[str, str]:
    return {"fieldSelector": field_selector} if field_selector else {}


def _refusal(method: str, path: str, status: int, body: bytes) -> ApiUnavailable:
    text = body.decode(errors="replace")
    try:
        text = str(msgspec.json.decode(body)["message"])
    except (msgspec.DecodeError, KeyError, TypeError):
        pass  # not a Status object: report the body itself
    message = f"{method} {path}: HTTP {status}: {text[:500]}"
    if status == 410:
        return ResourceExpired(message, status)
    return ApiUnavailable(message, status)


def _reason(fault: Exception) -> str:
    return str(fault) or type(fault).__name__
