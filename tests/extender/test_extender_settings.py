import asyncio
import ssl
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import httpx
import pytest

from greensched_core.clock import ManualClock
from greensched_core.errors import BadInput, TaskEnded
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.serving import Server
from greensched_core.settings import load_settings
from greensched_core.testing import make_node
from greensched_extender.__main__ import Process
from greensched_extender.settings import ExtenderSettings


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        pytest.param({"EXPLAIN_PORT": "8888"}, "both 8888: they must differ", id="one-port"),
        pytest.param({"EXCHANGE_RATES": '{"USD": 0}'}, "EXCHANGE_RATES", id="rate-zero"),
        pytest.param({"EXCHANGE_RATES": '{"usd": 1}'}, "not a currency such as USD", id="no-code"),
        pytest.param({"CURRENCY": "euro"}, "GREENSCHED_EXTENDER_CURRENCY", id="no-currency"),
        pytest.param({"FILTER_ENABLED": "true"}, "needs tls_client_ca_file", id="for-anybody"),
        pytest.param({"SIGNAL_FRESH_S": "90000"}, "shorter than signal_fresh_s", id="ages"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], sentence: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"GREENSCHED_EXTENDER_{name}", value)
    with pytest.raises(BadInput, match=sentence):
        load_settings(ExtenderSettings)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_power_budgets_need_no_certificate_where_only_this_machine_asks(host: str) -> None:
    assert load_settings(ExtenderSettings, [f"--listen-host={host}", "--filter-enabled=true"])


def test_two_ports_that_the_system_chooses_are_no_clash() -> None:
    assert load_settings(ExtenderSettings, ["--listen-port=0", "--explain-port=0"])


def signal(at: str) -> dict[str, Any]:
    current = {"startedAt": at, "carbonGramsPerKwh": 300.0, "pricePerMwh": 100.0}
    status = {"observedAt": at, "source": "t", "current": current}
    return {"spec": {"zone": "US-X", "currency": "USD"}, "status": status}


async def test_the_process_prices_in_the_currency_and_ages_of_its_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GREENSCHED_EXTENDER_CURRENCY", "GBP")
    monkeypatch.setenv("GREENSCHED_EXTENDER_EXCHANGE_RATES", '{"USD": 0.5}')
    monkeypatch.setenv("GREENSCHED_EXTENDER_SIGNAL_FRESH_S", "3000")
    process, now = new_process(), 1_795_255_200.0  # 2026-11-21T10:00:00Z
    process.signals.upsert("us-x", signal("2026-11-21T10:00:00Z"), now)
    known = process.signals.zone("US-X", now)
    assert (known.currency, known.price.value, known.price.step) == ("GBP", 50.0, "gridsignal")
    assert process.signals.zone("US-X", now + 3001).price.step == "last-good"


async def test_the_meters_get_the_cpus_that_the_snapshot_knows() -> None:
    process = new_process()
    process.snapshot.put_node(make_node("a", cpu_cores=48.0))
    assert process.cpu_cores("a") == 48.0
    assert process.cpu_cores("unknown") is None
    process.snapshot.put_pod("uid", "only-pods", (1.0, 1.0, 0.0))
    assert process.cpu_cores("only-pods") is None


def new_process(kind: type[Process] = Process, *flags: str) -> Process:
    access = ApiAccess("https://127.0.0.1:1", ssl.create_default_context())
    http = httpx.AsyncClient(trust_env=False)
    return kind(load_settings(ExtenderSettings, flags), ApiClient(access), http, ManualClock(0.0))


async def bug() -> None:
    raise RuntimeError("a bug")


@pytest.mark.parametrize(
    "work", [pytest.param(bug, id="failed"), pytest.param(partial(asyncio.sleep, 0), id="returned")]
)
async def test_an_extender_ends_when_one_of_its_tasks_has_ended(
    work: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    class Broken(Process):
        def _work(self, verbs: Server) -> dict[str, Coroutine[Any, Any, None]]:
            return {**super()._work(verbs), "broken": work()}

    process = new_process(Broken, "--listen-port=0", "--explain-port=0")
    async with asyncio.timeout(30):
        with pytest.raises(TaskEnded, match="ended: broken"):
            await process.run(asyncio.Event())


class ServerEnds(Process):
    """An extender whose first server ends by itself."""

    def _work(self, verbs: Server) -> dict[str, Coroutine[Any, Any, None]]:
        async def end() -> None:
            verbs.should_exit = True
            await asyncio.Event().wait()

        return {**super()._work(verbs), "end": end()}


async def test_an_extender_ends_when_one_of_its_servers_has_ended() -> None:
    async with asyncio.timeout(30):
        with pytest.raises(TaskEnded, match="ended: the server on port 0"):
            await new_process(ServerEnds, "--listen-port=0", "--explain-port=0").run(
                asyncio.Event()
            )
