"""What is sent first, what waits for the rate limit, and what nothing waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from hypothesis import given
from hypothesis import strategies as st

from greensched_operator.writing.outbox import Lane, Outbox
from tests.operator.annotated_work import running


class Sent:
    """Notes what was sent, in order; `held` is not sent before it is let go."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.at_once: dict[str, int] = {}
        self.most_at_once = 0
        self.let_go = asyncio.Event()

    def now(self, name: str) -> Callable[[], Awaitable[None]]:
        async def send() -> None:
            self.names.append(name)

        return send

    def held(self, name: str, uid: str) -> Callable[[], Awaitable[None]]:
        async def send() -> None:
            self.at_once[uid] = self.at_once.get(uid, 0) + 1
            self.most_at_once = max(self.most_at_once, self.at_once[uid])
            await self.let_go.wait()
            self.at_once[uid] -= 1
            self.names.append(name)

        return send


async def until_sent(sent: Sent, count: int) -> None:
    while len(sent.names) < count:
        await asyncio.sleep(0)


async def test_the_most_urgent_goes_first_and_of_one_workload_the_newest_alone() -> None:
    outbox, sent = Outbox(1000.0), Sent()
    for name, urgency_s in (("late", 3.0), ("old", 1.0), ("soon", 2.0)):
        outbox.put("same" if name == "old" else name, urgency_s, sent.now(name))
    outbox.put("same", 4.0, sent.now("new"))
    assert len(outbox) == 3
    async with running(outbox):
        await until_sent(sent, 3)
    assert sent.names == ["soon", "late", "new"]


async def test_releases_do_not_wait_behind_plans() -> None:
    outbox, sent = Outbox(1000.0), Sent()
    for place in range(50):
        outbox.put(f"plan-{place}", float(place), sent.now("plan"), Lane.PLAN)
    outbox.put("release", 1e9, sent.now("release"), Lane.RELEASE)
    async with running(outbox):
        await until_sent(sent, 51)
    assert "release" in sent.names[:9]


async def test_what_is_urgent_passes_by_what_waits_for_the_rate_limit() -> None:
    outbox, sent = Outbox(0.01), Sent()  # one in a hundred seconds
    for place in range(20):
        outbox.put(f"paced-{place}", 0.0, sent.now("paced"), Lane.RELEASE)
    async with running(outbox):
        await until_sent(sent, 1)
        outbox.put("urgent", 9.0, sent.now("urgent"))
        await until_sent(sent, 2)
    assert sent.names == ["paced", "urgent"]


async def test_what_became_urgent_no_longer_waits_for_the_rate_limit() -> None:
    outbox, sent = Outbox(0.01), Sent()
    for name in ("first", "second"):
        outbox.put(name, 0.0, sent.now(name), Lane.RELEASE)
    async with running(outbox):
        await until_sent(sent, 1)
        outbox.put("second", 0.0, sent.now("second, now urgent"))
        await until_sent(sent, 2)
    assert sent.names == ["first", "second, now urgent"]


async def test_plans_wait_for_a_rate_limit_of_their_own_and_nothing_waits_for_them() -> None:
    outbox, sent = Outbox(1000.0, plans_per_second=0.01), Sent()
    for place in range(3):
        outbox.put(f"plan-{place}", 0.0, sent.now("plan"), Lane.PLAN)
    async with running(outbox):
        await until_sent(sent, 1)
        outbox.put("release", 9.0, sent.now("release"), Lane.RELEASE)
        outbox.put("urgent", 9.0, sent.now("urgent"))
        await until_sent(sent, 3)
    assert sent.names == ["plan", "release", "urgent"]
    assert len(outbox) == 2


async def test_a_fault_holds_up_nothing_else() -> None:
    outbox, sent = Outbox(1000.0), Sent()

    async def fail() -> None:
        raise RuntimeError("odd")

    outbox.put("odd", 0.0, fail)
    outbox.put("plain", 1.0, sent.now("plain"))
    async with running(outbox):
        await until_sent(sent, 1)
        outbox.put("odd", 0.0, sent.now("odd"))
        await until_sent(sent, 2)
    assert sent.names == ["plain", "odd"]


LANES = st.sampled_from(list(Lane))


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 9), LANES), max_size=40))
def test_never_are_two_sent_at_a_time_about_one_workload(
    puts: Sequence[tuple[str, float, Lane]],
) -> None:
    async def play() -> tuple[int, int]:
        outbox, sent = Outbox(1e6, 1e6), Sent()
        async with running(outbox):
            for uid, urgency_s, lane in puts:
                outbox.put(uid, urgency_s, sent.held(uid, uid), lane)
                await asyncio.sleep(0)
            sent.let_go.set()
            while len(outbox) or any(sent.at_once.values()):
                await asyncio.sleep(0)
        return sent.most_at_once, len(sent.names)

    most, count = asyncio.run(play())
    assert most == (1 if puts else 0)
    assert len({uid for uid, _, _ in puts}) <= count <= len(puts)


async def test_what_was_refused_goes_again_all_at_once_when_one_is_taken() -> None:
    outbox, sent = Outbox(1000.0), Sent()
    is_away, tries = True, 0

    def refused_while_away(name: str) -> Callable[[], Awaitable[bool]]:
        async def send() -> bool:
            nonlocal tries
            tries += 1
            if not is_away:
                sent.names.append(name)
            return not is_away

        return send

    names = [f"plan-{place}" for place in range(20)]
    for name in names:
        outbox.put(name, 0.0, refused_while_away(name), Lane.PLAN)
    async with running(outbox):
        while tries < len(names) + 1:
            await asyncio.sleep(0.01)
        outbox.put(names[0], 0.0, sent.now("newer"), Lane.PLAN)
        is_away = False
        await until_sent(sent, len(names))
    assert sorted(sent.names) == sorted([*names[1:], "newer"])
    assert len(outbox) == 0


async def test_what_is_always_refused_keeps_nothing_back() -> None:
    outbox, sent = Outbox(1000.0), Sent()

    async def never() -> bool:
        return False

    for place in range(20):
        outbox.put(f"never-{place}", 0.0, never, Lane.PLAN)
        outbox.put(f"good-{place}", 1.0, sent.now("good"), Lane.PLAN)
    async with running(outbox):
        await until_sent(sent, 20)
