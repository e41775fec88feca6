"""One leader by a Lease, on clocks that stop, run ahead and differ."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from greensched_core.clock import ManualClock
from greensched_operator.runtime.leader import Leadership
from greensched_operator.runtime.own_lease import OwnLease
from tests.operator.annotated_work import PATIENCE_S, api_of, refused

LASTS_S = 15.0


class LeaseServer:
    """Keeps one Lease as the API server does, by its resourceVersion."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.version = 0
        self.is_down = False
        self.is_overtaken = False  # another writes between our read and our write

    def answer(self, request: httpx.Request) -> httpx.Response:
        if self.is_down:
            raise httpx.ConnectError("refused")
        if request.method == "GET":
            return httpx.Response(200, json=self.lease) if self.lease else refused(404)
        body = json.loads(request.content)
        version = body["metadata"].pop("resourceVersion", None)
        is_old = version is not None and version != str(self.version)
        if self.is_overtaken or is_old or (version is None and self.lease):
            return refused(409)
        self.version += 1
        known = self.lease["spec"] if self.lease else {}
        self.lease = {"metadata": {"resourceVersion": str(self.version)},
                      "spec": known | body["spec"]}  # fmt: skip
        return httpx.Response(200, json=self.lease)

    def replica(self, name: str, clock: ManualClock) -> Leadership:
        lease = OwnLease(api_of(self.answer), "greensched", "lease", name)
        return Leadership(lease, duration_s=LASTS_S, monotonic=clock.monotonic)

    @property
    def holder(self) -> str:
        assert self.lease is not None
        return str(self.lease["spec"]["holderIdentity"])


async def test_the_first_leads_and_the_second_stands_by() -> None:
    server, clock = LeaseServer(), ManualClock()
    first, second = server.replica("first", clock), server.replica("second", clock)
    assert not first.holds()
    assert await first.tried()
    assert not await second.tried()
    assert (first.holds(), second.holds()) == (True, False)


@pytest.mark.parametrize(
    ("silent_s", "holder"),
    [
        pytest.param(LASTS_S, "first", id="to-the-last-moment"),
        pytest.param(LASTS_S + 0.1, "second", id="after-it-has-run-out"),
    ],
)
async def test_a_silent_leader_is_followed_when_its_lease_has_run_out(
    silent_s: float, holder: str
) -> None:
    server, clock = LeaseServer(), ManualClock()
    first, second = server.replica("first", clock), server.replica("second", clock)
    await first.tried()
    await second.tried()
    clock.advance(silent_s)
    await second.tried()
    assert server.holder == holder


async def test_a_leader_that_was_frozen_knows_at_once_that_it_leads_no_more() -> None:
    server, clock = LeaseServer(), ManualClock()
    frozen = server.replica("frozen", clock)
    await frozen.tried()
    assert frozen.holds()
    clock.advance(LASTS_S)  # it has asked nobody
    assert not frozen.holds()


async def test_two_never_hold_it_at_a_time_however_far_their_clocks_are_apart() -> None:
    server, early, late = LeaseServer(), ManualClock(0.0), ManualClock(1e6)
    first, second = server.replica("first", early), server.replica("second", late)
    await first.tried()
    for _ in range(40):
        early.advance(1.0)
        late.advance(1.0)
        await second.tried()
        assert not (first.holds() and second.holds())
    assert second.holds()


async def test_a_leader_that_speaks_keeps_it() -> None:
    server, clock = LeaseServer(), ManualClock()
    first, second = server.replica("first", clock), server.replica("second", clock)
    for _ in range(20):
        assert await first.tried()
        assert not await second.tried()
        clock.advance(LASTS_S / 3)
    assert server.holder == "first"


async def test_who_was_overtaken_does_not_lead() -> None:
    server, clock = LeaseServer(), ManualClock()
    server.is_overtaken = True
    replica = server.replica("slow", clock)
    assert not await replica.tried()
    assert not replica.holds()


async def test_without_the_api_server_a_leader_leads_until_others_may() -> None:
    server, clock = LeaseServer(), ManualClock()
    leader = server.replica("leader", clock)
    await leader.tried()
    server.is_down = True
    clock.advance(LASTS_S / 2)
    assert not await leader.tried()
    assert leader.holds()
    clock.advance(LASTS_S / 2)
    assert not leader.holds()


async def test_who_gives_up_leaves_it_to_another_at_once() -> None:
    server, clock = LeaseServer(), ManualClock()
    first, second = server.replica("first", clock), server.replica("second", clock)
    await first.tried()
    await first.give_up()
    assert not first.holds()
    assert await second.tried()
    await first.give_up()  # it is not its own any more
    assert server.holder == "second"


async def test_after_an_outage_a_leader_leads_on_where_nobody_has_followed() -> None:
    server, clock = LeaseServer(), ManualClock()
    leader = server.replica("leader", clock)
    await leader.tried()
    server.is_down = True
    clock.advance(10 * LASTS_S)
    assert not await leader.tried()
    assert not leader.holds()
    server.is_down = False
    assert await leader.tried()
    assert leader.holds()


async def test_who_finds_another_in_his_place_keeps_it_no_longer() -> None:
    server, clock = LeaseServer(), ManualClock()
    lease = OwnLease(api_of(server.answer), "greensched", "lease", "first")
    first = Leadership(lease, duration_s=0.03, monotonic=clock.monotonic)
    await first.tried()
    assert server.lease is not None
    server.lease["spec"]["holderIdentity"] = "second"
    async with asyncio.timeout(PATIENCE_S):
        await first.keep()
    assert server.holder == "second"
