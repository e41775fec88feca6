"""A server that replays providers' answers, and a controller of signals that asks it."""

import asyncio
import base64
import json
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from prometheus_client import CollectorRegistry

from greensched_core.clock import Clock, ManualClock, WallClock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.labels import PROVIDER_SECRET_TYPE
from greensched_core.signals.static import load_static_zones
from greensched_core.signals.watched import GRID_SIGNALS_PATH
from greensched_core.watching import Watch
from greensched_operator.runtime.settings import OperatorSettings
from greensched_operator.signals.grid_signal_controller import (
    GridSignalController,
    make_grid_signal_controller,
)
from greensched_operator.signals.metrics import SignalMetrics
from greensched_operator.signals.provider_client import ProviderClient
from greensched_operator.signals.provider_secrets import ProviderSecrets
from greensched_operator.signals.spec import decode_grid_signal
from greensched_operator.signals.web import Web, WebLimits, make_http
from greensched_testbed.controlplane import ControlPlane

Kubectl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def kubectl(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Return a runner of kubectl on the real control plane."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path_factory.mktemp("home")),
        "KUBECONFIG": str(control_plane.kubeconfig),
    }

    def run(*arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(control_plane.programs / "kubectl"), *arguments]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, check=False, env=environment
        )

    return run


@dataclass
class Asked:
    """A request to a provider."""

    host: str
    path: str
    parameters: dict[str, str]
    headers: dict[str, str]


# By the last part of the path.
_STORED = {
    ("api.electricitymaps.com", "latest"): "electricity-maps-latest.json",
    ("api.electricitymaps.com", "forecast"): "electricity-maps-forecast.json",
    ("api.watttime.org", "login"): "watttime-login.json",
    ("api.watttime.org", "forecast"): "watttime-forecast.json",
    ("api.carbonintensity.org.uk", "fw48h"): "uk-national.json",
    ("web-api.tp.entsoe.eu", "api"): "entsoe-prices.xml",
    ("dataportal-api.nordpoolgroup.com", "DayAheadPrices"): "nord-pool-today.json",
    ("oasis.caiso.com", "SingleZip"): "caiso-prices.zip",
    ("api.energy-charts.info", "price"): "energy-charts-price.json",
}
_GARBAGE = b"<html>Be right back</html>"


@dataclass
class ReplayServer:
    """Replaces all providers: a real server of stored answers that can misbehave."""

    golden: Callable[[str], bytes]
    port: int = 0
    behaviour: dict[str, str] = field(default_factory=dict)  # by host
    asked: list[Asked] = field(default_factory=list)

    def http(self) -> httpx.AsyncClient:
        """Return a client that sends all requests here, for any address."""
        return httpx.AsyncClient(transport=_Detour(self.port))

    def hosts(self) -> list[str]:
        """Return the requested hosts in order, and clear the list."""
        hosts = [each.host for each in self.asked]
        self.asked.clear()
        return hosts

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            named = (line.split(": ", 1) for line in head[1:] if line)
            headers = {name.lower(): value for name, value in named}
            parts = urlsplit(head[0].split(" ")[1])
            asked = Asked(headers["x-host"], parts.path, dict(parse_qsl(parts.query)), headers)
            self.asked.append(asked)
            how = self.behaviour.get(asked.host, "well")
            if how == "hangs":
                await reader.read()  # until the client gives up
            status, more, body = self._reply(asked, how)
            length = f"Content-Length: {len(body)}\r\nConnection: close"
            writer.write(f"HTTP/1.1 {status} x\r\n{length}\r\n{more}\r\n".encode() + body)
            await writer.drain()
        writer.close()

    def _reply(self, asked: Asked, how: str) -> tuple[int, str, bytes]:
        stored = self.golden(_STORED[asked.host, asked.path.rpartition("/")[2]])
        replies = {
            "well": (200, "", stored),
            "fails": (500, "", b"oops"),
            "garbage": (200, "", _GARBAGE),
            "last-month": (200, "", stored.replace(b"2026-01-", b"2025-12-")),
            "limits": (429, "Retry-After: 1200\r\n", b"slow down"),
            "limits-until": (429, "Retry-After: Mon, 19 Jan 2026 12:30:00 GMT\r\n", b""),
            "redirects": (302, "Location: http://elsewhere.test/\r\n", b""),
            "huge": (200, "", b"x" * 70_000),
            "refuses": (401, "", f'{{"message": "bad key {asked.headers}"}}'.encode()),
            "nothing": (404, "", b"{}"),
            "bent": (200, "Content-Encoding: gzip\r\n", b"no gzip"),
        }
        if how == "well" and asked.parameters.get("date") == "2026-01-20":
            return 204, "", b""
        return replies[how]


class _Detour(httpx.AsyncBaseTransport):
    def __init__(self, port: int) -> None:
        self._port = port
        self._inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["x-host"] = request.url.host
        request.url = request.url.copy_with(scheme="http", host="127.0.0.1", port=self._port)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


@pytest.fixture
async def providers(golden: Callable[[str], bytes]) -> AsyncIterator[ReplayServer]:
    """Run a server for all providers, on a real socket."""
    replay = ReplayServer(golden)
    server = await asyncio.start_server(replay.serve, "127.0.0.1", 0)
    replay.port = server.sockets[0].getsockname()[1]
    yield replay
    server.close()


PATH = f"{GRID_SIGNALS_PATH}/zz"
TOKEN = "s3cret-t0ken"


async def at_once(_: float) -> None:
    """Return without waiting between attempts."""


class SignalOperator:
    """An operator's controller of GridSignals, which tests can restart."""

    def __init__(self, api: ApiClient, http: httpx.AsyncClient, now: float, namespace: str) -> None:
        self.api = api
        self.clock = ManualClock(now)
        self.registry = CollectorRegistry()
        self.namespace = namespace
        self._http = http
        self.restart()

    def restart(self) -> None:
        """Replace the controller by a new one, which knows only what is in the cluster."""
        self.registry = CollectorRegistry()
        limits = WebLimits(timeout_s=0.3, attempts=2)
        questions = ProviderClient(
            Web(self._http, self.clock, limits, sleep=at_once),
            ProviderSecrets(self.api, self.namespace),
            self.clock,
            load_static_zones(),
            None,
        )
        self.metrics = SignalMetrics(self.registry)
        self.controller = GridSignalController(
            self.api, self.clock, questions, self.metrics, chance=lambda: 0.0
        )

    async def create(self, **spec: Any) -> None:
        """Create GridSignal zz."""
        await self._create("ZZ", {"currency": "EUR", **spec})

    async def create_other(self, **spec: Any) -> str:
        """Create GridSignal yy, which the test deletes, and return its path."""
        await self._create("YY", spec)
        return f"{GRID_SIGNALS_PATH}/yy"

    async def _create(self, zone: str, spec: dict[str, Any]) -> None:
        body = {
            "apiVersion": "greensched.io/v1alpha1",
            "kind": "GridSignal",
            "metadata": {"name": zone.lower()},
            "spec": {"zone": zone, **spec},
        }
        await self.api.create(GRID_SIGNALS_PATH, json.dumps(body).encode())

    async def object(self) -> dict[str, Any]:
        """Return the current GridSignal zz."""
        found: dict[str, Any] = json.loads(await self.api.get(PATH))
        return found

    async def turn(self, later_s: float = 0.0) -> dict[str, Any]:
        """Advance the clock, give the controller the object, run a turn; return the status."""
        self.clock.advance(later_s)
        self.controller.list_began()
        self.controller.upsert(decode_grid_signal(await self.api.get(PATH)))
        self.controller.list_ended()
        await self.controller.turn()
        status: dict[str, Any] = (await self.object()).get("status", {})
        return status

    @asynccontextmanager
    async def by_itself(
        self, clock: Clock, http: httpx.AsyncClient | None = None, folder: Path | None = None
    ) -> AsyncIterator[None]:
        """Run a controller with its watch of GridSignals, as the operator does."""
        async with http or make_http() as web:
            settings = OperatorSettings(namespace=self.namespace, signal_files=folder)
            controller = make_grid_signal_controller(settings, self.api, clock, self.metrics, web)
            watch = Watch(self.api, GRID_SIGNALS_PATH, decode_grid_signal, controller, WallClock())
            tasks = [asyncio.create_task(watch.run()), asyncio.create_task(controller.run())]
            try:
                yield
            finally:
                for each in tasks:
                    each.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def metric(self, name: str, **wanted: str) -> float | None:
        """Return a metric's value."""
        return self.registry.get_sample_value(f"greensched_operator_signal_{name}", wanted)


@pytest.fixture
async def signals(
    crds: None, api: ApiClient, namespace: str, providers: ReplayServer, now: float
) -> AsyncIterator[SignalOperator]:
    """Return a controller with a key for Electricity Maps; delete GridSignal zz afterwards."""
    secret = {
        "metadata": {"name": "maps"},
        "type": PROVIDER_SECRET_TYPE,
        "data": {"token": base64.b64encode(TOKEN.encode()).decode()},
    }
    await api.create(f"/api/v1/namespaces/{namespace}/secrets", json.dumps(secret).encode())
    async with providers.http() as http:
        yield SignalOperator(api, http, now, namespace)
    try:
        await api.delete(PATH)
    except ApiUnavailable as fault:
        assert fault.status == 404
