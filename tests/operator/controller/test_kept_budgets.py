"""What is kept of budgets for the next leader, on an API server that fails and recovers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from greensched_core.clock import ManualClock
from greensched_core.ledger_records import Amounts
from greensched_operator.controller.kept_budgets import KeptBudgets
from greensched_operator.objects.green_policy import Budget, BudgetPeriod
from greensched_operator.planning.budgets import Budgets
from greensched_operator.writing.metrics import ControllerError
from tests.operator.annotated_work import NOW_S, api_of

PATH = "/api/v1/namespaces/own/configmaps/b"
BUDGET = Budget(BudgetPeriod.MONTH, energy_kwh=1.0)
KWH = 3.6e6


class Server:
    """An API server with at most one ConfigMap."""

    def __init__(self, data: dict[str, str] | None = None) -> None:
        self.data = data
        self.refuses = 0  # with this status
        self.writes: list[str] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Answer a GET or PATCH as an API server does."""
        if self.refuses:
            return httpx.Response(self.refuses, json={"message": "no"})
        if request.method == "GET":
            known: dict[str, Any] = {"metadata": {"name": "b"}, "data": self.data}
            return httpx.Response(404 if self.data is None else 200, json=known)
        assert (request.method, request.url.path) == ("PATCH", PATH)
        if self.data is None:
            return httpx.Response(404, json={"message": "not found"})
        self.writes.append(request.method)
        self.data |= json.loads(request.content)["data"]
        return httpx.Response(200, json={})


class Leader:
    """A replica's budgets, and what keeps them."""

    def __init__(self, server: Server, *, leads: bool = True) -> None:
        self.budgets, self.errors = Budgets(), list[ControllerError]()
        self.kept = KeptBudgets(
            self.budgets, api_of(server.answer), PATH, ManualClock(NOW_S), lambda: leads,
            self.errors.append,
        )  # fmt: skip

    def start(self, namespace: str = "team") -> None:
        """Count a start that takes the whole budget of its namespace."""
        self.budgets.spend(namespace, NOW_S, Amounts(energy_j=KWH))
        self.is_spent(namespace)

    def is_spent(self, namespace: str = "team") -> bool:
        """Return whether the budget of a namespace is spent."""
        return self.budgets.opens_s(namespace, BUDGET, NOW_S) > NOW_S


async def test_what_one_leader_started_counts_for_the_next() -> None:
    server = Server({})
    first = Leader(server)
    assert await first.kept.recall()
    first.start()
    assert await first.kept.keep()
    assert await first.kept.keep()
    assert server.writes == ["PATCH"], "it is written once"
    second = Leader(server)
    assert not second.is_spent()
    assert await second.kept.recall()
    assert await second.kept.recall()
    assert second.is_spent()
    assert first.errors + second.errors == []


async def test_a_leader_that_cannot_read_goes_on_and_adds_what_it_missed_later() -> None:
    server = Server({"team": f"[[{int(NOW_S // 86_400)}, 1, 0]]"})
    server.refuses = 503
    leader = Leader(server)
    assert not await leader.kept.recall()
    assert (leader.is_spent(), leader.errors) == (False, [ControllerError.BUDGETS_NOT_RECALLED])
    server.refuses = 0
    assert await leader.kept.recall()
    assert leader.is_spent()


async def test_what_could_not_be_written_is_written_later() -> None:
    server = Server({})
    leader = Leader(server)
    await leader.kept.recall()
    leader.start()
    server.refuses = 403
    assert not await leader.kept.keep()
    assert leader.errors == [ControllerError.BUDGETS_NOT_KEPT]
    server.refuses = 0
    assert await leader.kept.keep()
    assert server.data is not None
    assert "team" in server.data


async def leader_that_wrote(server: Server, *namespaces: str) -> Leader:
    """Return a leader that has started work of each namespace, and written its use."""
    leader = Leader(server)
    await leader.kept.recall()
    for namespace in namespaces:
        leader.start(namespace)
        await leader.kept.keep()
    return leader


async def test_only_what_has_changed_is_written_again() -> None:
    server = Server({})
    leader = await leader_that_wrote(server, "team", "others")
    leader.start("team")
    server.data = {}
    await leader.kept.keep()
    assert server.data.keys() == {"team"}


async def test_who_does_not_lead_writes_nothing() -> None:
    server = Server({})
    standby = Leader(server, leads=False)
    await standby.kept.recall()
    standby.start()
    assert await standby.kept.keep()
    assert server.writes == []


async def test_a_use_that_nobody_can_read_is_counted_and_the_rest_is_kept() -> None:
    server = Server({"odd": "much", "team": f"[[{int(NOW_S // 86_400)}, 1, 0]]"})
    leader = Leader(server)
    assert await leader.kept.recall()
    assert (leader.is_spent(), leader.is_spent("odd")) == (True, False)
    assert leader.errors == [ControllerError.BUDGETS_NOT_RECALLED]


async def test_planning_waits_for_what_cannot_be_read_at_first() -> None:
    server = Server({"team": f"[[{int(NOW_S // 86_400)}, 1, 0]]"})
    server.refuses = 503
    leader = Leader(server)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(leader.kept.run())
        while not leader.errors:
            await asyncio.sleep(0.01)
        server.refuses = 0
        await leader.kept.recalled()
        assert leader.is_spent()
        running.cancel()
    assert leader.errors == [ControllerError.BUDGETS_NOT_RECALLED]


async def test_after_somebody_has_deleted_it_all_of_it_is_written_once_it_is_there_again() -> None:
    server = Server({})
    leader = await leader_that_wrote(server, "team", "others")
    server.data = None
    leader.start()
    assert not await leader.kept.keep()
    server.data = {}
    assert await leader.kept.keep()
    assert server.data.keys() == {"team", "others"}


async def test_each_kind_of_error_is_logged_once_until_it_is_over(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server({"odd": "much"})
    leader = Leader(server)
    await leader.kept.recall()
    for refuses in (403, 403, 0, 403):
        leader.start()
        server.refuses = refuses
        await leader.kept.keep()
    told = capsys.readouterr().out
    assert told.count("could not be read: periods begin at zero") == 1
    assert told.count("could not be written: the next leader") == 2


@pytest.mark.parametrize("body", [b"<html>", b'{"data": 5}', b'{"data": {"\xff": "1"}}'])
async def test_an_answer_that_is_no_config_map_is_asked_for_again(body: bytes) -> None:
    errors, budgets = list[ControllerError](), Budgets()
    client, clock = api_of(lambda _: httpx.Response(200, content=body)), ManualClock(NOW_S)
    kept = KeptBudgets(budgets, client, PATH, clock, lambda: True, errors.append)
    assert not await kept.recall()
    assert errors == [ControllerError.BUDGETS_NOT_RECALLED]
