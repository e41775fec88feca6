import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from structlog.testing import capture_logs

from greensched_core.errors import BadInput
from greensched_core.metering.measured import PowerReader
from greensched_core.metering.prometheus import PrometheusApi
from greensched_core.settings import load_settings
from greensched_core.testing import make_node
from greensched_extender.settings import ExtenderSettings
from greensched_extender.upkeep import keep_bundle, keep_measured, keep_provisional

World = Any


async def until(wanted: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not wanted():
            await asyncio.sleep(0.005)


async def test_measured_values_serve_while_they_come_and_are_dropped_when_they_stop(
    world: World,
) -> None:
    world.add(make_node("a"), make_node("w"))
    full_w = make_node("w").curve.peak_w
    answers = {"on": True}

    def prometheus(request: httpx.Request) -> httpx.Response:
        if not answers["on"]:
            return httpx.Response(503)
        found = []
        if "greensched_node_cpu_utilisation_ratio" in request.url.params["query"]:
            found = [{"metric": {"node": "a"}, "value": [1.0, "0.7"]}]
        if "greensched_node_power_watts" in request.url.params["query"]:
            found = [{"metric": {"node": "w"}, "value": [1.0, str(full_w)]}]
        data = {"resultType": "vector", "result": found}
        return httpx.Response(200, json={"status": "success", "data": data})

    async with httpx.AsyncClient(transport=httpx.MockTransport(prometheus)) as http:
        reader = PowerReader(PrometheusApi(http, "http://prometheus"))
        task = asyncio.create_task(
            keep_measured(reader, world.snapshot, world.metrics, world.clock, interval_s=0.01)
        )
        await until(lambda: world.snapshot.report("a").utilisation == pytest.approx(0.7))
        assert world.snapshot.report("w").utilisation == pytest.approx(1.0)
        answers["on"] = False
        await until(lambda: world.counted("prometheus_failures_total") > 2)
        assert world.snapshot.report("a").utilisation_source == "measured", "not yet too old"
        world.clock.advance(1.0)
        await until(lambda: world.snapshot.report("a").utilisation_source == "requests")
        task.cancel()
        await asyncio.wait([task])


async def test_questions_left_open_are_counted_and_reported_once(world: World) -> None:
    def prometheus(request: httpx.Request) -> httpx.Response:
        if "kepler_node_cpu_watts" in request.url.params["query"]:
            return httpx.Response(422)
        data = {"resultType": "vector", "result": []}
        return httpx.Response(200, json={"status": "success", "data": data})

    async with httpx.AsyncClient(transport=httpx.MockTransport(prometheus)) as http:
        reader = PowerReader(PrometheusApi(http, "http://prometheus"))
        with capture_logs() as lines:
            task = asyncio.create_task(
                keep_measured(reader, world.snapshot, world.metrics, world.clock, interval_s=0.01)
            )
            await until(lambda: world.counted("prometheus_failures_total") > 2)
            task.cancel()
            await asyncio.wait([task])
    (line,) = lines
    assert line["log_level"] == "warning"
    assert line["reasons"][0].startswith("kepler-cpu: ")


class Failing:
    """Fails in a way that nobody foresaw."""

    async def read(self, now: float) -> None:
        raise ZeroDivisionError

    def reload(self) -> None:
        raise ZeroDivisionError


async def test_a_failure_nobody_foresaw_is_counted_and_the_work_goes_on(world: World) -> None:
    failing: Any = Failing()
    tasks = [
        asyncio.create_task(
            keep_measured(failing, world.snapshot, world.metrics, world.clock, interval_s=0.01)
        ),
        asyncio.create_task(keep_bundle(failing, world.metrics, every_s=0.01)),
    ]
    names = ("prometheus", "bundle")
    await until(lambda: all(world.counted("task_failures_total", task=n) > 2 for n in names))
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_provisional_pods_go_also_while_nobody_asks(world: World) -> None:
    world.add(make_node("a"))
    world.snapshot.expect("u", 0, (1.0, 1.0, 0.0))
    world.clock.advance(11.0)
    task = asyncio.create_task(keep_provisional(world.snapshot, every_s=0.01))
    await until(lambda: world.snapshot.provisional_count == 0)
    task.cancel()
    await asyncio.wait([task])


def test_settings_hold_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENSCHED_EXTENDER_TLS_CERT_FILE", "")
    monkeypatch.setenv("GREENSCHED_EXTENDER_ZONE_MAP", '{"europe-west3": "DE"}')
    settings = load_settings(ExtenderSettings, ["--listen-port=0", "--policy=least-carbon"])
    assert (settings.tls_cert_file, settings.listen_port) == (None, 0)
    assert settings.zone_map == {"europe-west3": "DE"}
    monkeypatch.setenv("GREENSCHED_EXTENDER_TLS_CERT_FILE", "/tls.crt")
    with pytest.raises(BadInput, match="together"):
        load_settings(ExtenderSettings)
    monkeypatch.setenv("GREENSCHED_EXTENDER_DEFAULT_PUE", "0.5")
    with pytest.raises(BadInput, match="GREENSCHED_EXTENDER_DEFAULT_PUE"):
        load_settings(ExtenderSettings)


def test_every_setting_says_what_it_is_for() -> None:
    for name, field in ExtenderSettings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name
    assert isinstance(ExtenderSettings().serviceaccount_dir, Path)
