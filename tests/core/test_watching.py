import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from greensched_core.clock import ManualClock, WallClock
from greensched_core.watching import SharedSink, Watch, WatchHealth, as_it_is

Api = Any  # the scripted server of conftest.py


class Thing(msgspec.Struct):
    metadata: dict[str, str]


class Shelf:
    """A sink that keeps names."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._listed: set[str] = set()

    def list_began(self) -> None:
        self._listed = set()

    def upsert(self, item: Thing) -> None:
        if item.metadata["name"] == "cursed":
            raise RuntimeError("a sink that fails")
        self.names.add(item.metadata["name"])
        self._listed.add(item.metadata["name"])

    def list_ended(self) -> None:
        self.names &= self._listed

    def remove(self, item: Thing) -> None:
        self.names.discard(item.metadata["name"])


def thing(name: str, version: int = 2) -> dict[str, Any]:
    return {"metadata": {"name": name, "resourceVersion": str(version)}}


def event(kind: str, name: str, version: int) -> dict[str, Any]:
    return {"type": kind, "object": thing(name, version)}


async def follow(
    scripted: Api, until: Callable[[Shelf], bool], *, selector: str = ""
) -> tuple[Shelf, Watch[Thing]]:
    """Follow the script until the shelf is as expected."""
    shelf = Shelf()
    async with scripted.client() as client:
        decode = msgspec.json.Decoder(Thing).decode
        watch = Watch(client, "/things", decode, shelf, WallClock(), field_selector=selector)
        task = asyncio.create_task(watch.run())
        try:
            async with asyncio.timeout(20):
                while not until(shelf):
                    assert not task.done(), task
                    await asyncio.sleep(0.005)
        finally:
            task.cancel()
            await asyncio.wait([task])
    return shelf, watch


async def test_a_list_is_kept_current_by_the_watch(scripted: Api) -> None:
    scripted.page(thing("a"), thing("b"), version="5")
    scripted.stream(event("ADDED", "c", 6), event("DELETED", "a", 7), hang_s=1)
    shelf, watch = await follow(scripted, lambda s: s.names == {"b", "c"}, selector="x!=")
    assert [query.get("resourceVersion") for _, _, query in scripted.asked] == [None, "5"]
    assert {query["fieldSelector"] for _, _, query in scripted.asked} == {"x!="}
    assert watch.health.synced
    assert watch.health.lists == 1
    assert watch.health.age_s(ManualClock(1e9)) == 0.0


async def test_a_closed_watch_resumes_where_it_was(scripted: Api) -> None:
    scripted.page(version="5")
    scripted.stream(event("ADDED", "a", 6), event("BOOKMARK", "", 9))
    scripted.stream(event("ADDED", "b", 10), hang_s=1)
    _, watch = await follow(scripted, lambda s: s.names == {"a", "b"})
    assert [query.get("resourceVersion") for _, _, query in scripted.asked] == [None, "5", "9"]
    assert watch.health.lists == 1


@pytest.mark.parametrize("how", ["status", "event"])
async def test_an_expired_watch_lists_again_and_forgets_what_is_gone(
    scripted: Api, how: str
) -> None:
    scripted.page(thing("a"), thing("old"), version="5")
    if how == "status":
        scripted.refuse(410, "too old")
    else:
        scripted.stream({"type": "ERROR", "object": {"code": 410, "message": "too old"}})
    scripted.page(thing("a"), thing("new"), version="50")
    scripted.stream(hang_s=1)
    _, watch = await follow(scripted, lambda s: s.names == {"a", "new"})
    assert watch.health.lists == 2


async def test_an_unreachable_server_is_asked_again_and_the_picture_stays(scripted: Api) -> None:
    scripted.page(thing("a"), version="5")
    scripted.refuse(500)
    scripted.refuse(503)
    scripted.stream(event("ADDED", "b", 6), hang_s=1)
    shelf, _ = await follow(scripted, lambda s: "b" in s.names)
    assert shelf.names == {"a", "b"}


async def test_a_list_broken_off_half_way_forgets_nothing(scripted: Api) -> None:
    scripted.page(thing("a"), thing("b"), version="5")
    scripted.refuse(410)
    scripted.page(thing("a"), version="50", more="page-2")
    scripted.refuse(500)
    scripted.page(thing("a"), thing("b"), thing("c"), version="51")
    scripted.stream(hang_s=1)
    shelf, _ = await follow(scripted, lambda s: "c" in s.names)
    assert shelf.names == {"a", "b", "c"}


async def test_one_odd_object_hides_no_other(scripted: Api) -> None:
    scripted.page({"metadata": 5}, thing("cursed"), thing("a"), version="5")
    scripted.stream(
        b"not json",
        {"type": "ADDED"},
        {"type": "ADDED", "object": {"no": "metadata"}},
        event("ADDED", "b", 6),
        hang_s=1,
    )
    _, watch = await follow(scripted, lambda s: s.names == {"a", "b"})
    assert watch.health.undecodable == 5


async def test_a_watch_that_always_ends_at_once_is_not_opened_in_a_hot_loop(scripted: Api) -> None:
    scripted.page(version="5")
    for _ in range(50):
        scripted.stream()
    started = asyncio.get_running_loop().time()
    await follow(scripted, lambda _: asyncio.get_running_loop().time() > started + 0.5)
    assert len(scripted.asked) < 10


def test_what_one_sink_of_a_watch_cannot_read_the_others_take() -> None:
    def unreadable(item: Thing) -> Thing:
        raise RuntimeError(f"{item.metadata['name']} cannot be read")

    first, second = Shelf(), Shelf()
    shared = SharedSink[Thing]((unreadable, first), (as_it_is, second))
    shared.list_began()
    with pytest.raises(RuntimeError, match="a cannot be read"):
        shared.upsert(Thing({"name": "a"}))
    shared.list_ended()
    assert (first.names, second.names) == (set(), {"a"})
    with pytest.raises(RuntimeError, match="a cannot be read"):
        shared.remove(Thing({"name": "a"}))
    assert second.names == set()


def test_age_counts_from_the_loss_of_the_watch() -> None:
    clock = ManualClock(100.0)
    health = WatchHealth(lost_at=90.0)
    assert health.age_s(clock) == 10.0
    health.lost_at = None
    assert health.age_s(clock) == 0.0


def test_a_watch_that_another_thread_restores_meanwhile_has_an_age_all_the_same() -> None:
    health = WatchHealth(lost_at=90.0)

    class Restoring(ManualClock):
        """Its watch is live again by the time it is read."""

        def monotonic(self) -> float:
            health.lost_at = None
            return super().monotonic()

    assert health.age_s(Restoring(100.0)) == 10.0
