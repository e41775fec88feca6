"""Signals go, lie and grow old, their provider fails in every way, and clocks differ by an hour:
work is still done in time.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels
from greensched_core.kubernetes_api import ApiClient
from greensched_core.signals.timestamps import format_timestamp
from greensched_testbed.errors import CommandFailed
from greensched_testbed.held_day.day import Day
from greensched_testbed.held_day.replaying import create_signals, publish
from greensched_testbed.operator_processes import FastClock
from tests.operator.faults.conftest import HOUR_S, RATE

if TYPE_CHECKING:
    from tests.operator.faults.conftest import Stage

pytestmark = [pytest.mark.controlplane, pytest.mark.day]
SIGNALS = f"{labels.GRID_SIGNALS}.{labels.GROUP}"


class Provider:
    """A carbon provider that answers as it is told to, over HTTP."""

    def __init__(self, day: Day) -> None:
        self._day = day
        self.behaviour = "well"
        self.asked: Counter[str] = Counter()

    def answer(self) -> tuple[HTTPStatus, str]:
        """Return what is answered now."""
        self.asked[self.behaviour] += 1
        match self.behaviour:
            case "garbage":
                return HTTPStatus.OK, '{"slots": [{"start": "soon", "grams": [}'
            case "error":
                return HTTPStatus.INTERNAL_SERVER_ERROR, "it broke"
            case "too-often":
                return HTTPStatus.TOO_MANY_REQUESTS, "not so fast"
            case "yesterday":
                return HTTPStatus.OK, self._slots(-26.0)
        return HTTPStatus.OK, self._slots(0.0)

    def _slots(self, hours: float) -> str:
        """Return a day of the grid as it is forecast from so many hours from now on."""
        grids, first = self._day.world.grids, int(self._day.now_s() // HOUR_S)
        slots = [
            {"start": self._day.start_s + (hour + hours) * HOUR_S,
             "grams": float(grids.forecast_carbon_g_per_kwh[hour])}
            for hour in range(first, first + 25)
        ]  # fmt: skip
        return json.dumps({"slots": slots})


@contextmanager
def serving(provider: Provider) -> Iterator[str]:
    """Serve a provider, and give its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = provider.answer()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/grid"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def faulty_provider(stage: Stage) -> None:
    provider = Provider(stage.day)
    with serving(provider) as url:
        await stage.at(9.0)
        endpoint = {"url": url, "slots": "slots", "start": "start", "value": "grams",
                    "slotSeconds": 3600}  # fmt: skip
        spec = {"pollInterval": "15m", "carbon": [{"jsonEndpoint": endpoint}]}
        await stage.kubectl("patch", SIGNALS, "a", "--type=merge", "-p", json.dumps({"spec": spec}))
        for hours, behaviour in ((10.5, "error"), (12.0, "well"), (13.0, "garbage"),
                                 (14.5, "well"), (15.0, "yesterday"), (17.0, "too-often"),
                                 (19.0, "gone")):  # fmt: skip
            await stage.at(hours)
            # A controller that was just started anew may ask later than the hour says.
            await stage.until(lambda: provider.asked[provider.behaviour] > 0)
            provider.behaviour = behaviour
    # From here on nobody listens there.


async def write_status(stage: Stage, status: dict[str, Any]) -> bool:
    """Write the status of the zone's signal; tell whether the API server took it."""
    patch = json.dumps({"status": status})
    try:
        await stage.kubectl("patch", SIGNALS, "a", "--subresource=status", "--type=merge",
                            "-p", patch)  # fmt: skip
    except CommandFailed:
        return False
    return True


async def faulty_signals(stage: Stage) -> None:
    day = stage.day
    async with ApiClient(stage.plane.access) as client:
        await stage.at(2.0)
        await stage.kubectl("delete", SIGNALS, "a")
        await stage.at(4.0)
        await create_signals(client, day)
        await publish(client, day)
        await stage.at(5.0)
        at = format_timestamp(round(day.start_s + day.now_s()))
        for current in ({"carbonGramsPerKwh": -300.0, "pricePerMwh": -40.0},
                        {"carbonGramsPerKwh": 1e300},
                        {"carbonGramsPerKwh": "clean"}):  # fmt: skip
            await write_status(stage, {"current": {"startedAt": at, **current}})
        await write_status(stage, {"observedAt": "yesterday", "forecast": [{"start": "soon"}]})
        await stage.at(7.0)
        await publish(client, day)
        yesterday = format_timestamp(round(day.start_s + day.now_s() - 25 * HOUR_S))
        await write_status(stage, {"observedAt": yesterday, "current": None, "forecast": [
            {"start": yesterday, "carbonGramsPerKwh": 1.0}]})  # fmt: skip
        await stage.at(9.0)
        await publish(client, day)


async def faulty_clocks(stage: Stage) -> None:
    own = {}
    for name, hours in (("webhook", 1.0), ("controller", -1.0)):
        pace = stage.day.pace
        own[name] = FastClock(RATE, pace.since_s, pace.shows_s + hours * HOUR_S).settings
    for name, begin, end in (("webhook", 9.5, 12.0), ("controller", 12.5, 18.0)):
        await stage.at(begin)
        stage.processes.kill(name)
        await stage.start(name, **own[name])
        await stage.at(end)
        stage.processes.kill(name)
        await stage.start(name)


def test_signals_and_clocks_that_are_wrong_make_nothing_late(stage: Stage) -> None:
    runs = stage.live(faulty_signals, faulty_provider, faulty_clocks, publish_every_s=1e9)
    stage.assert_promise_kept(runs)
