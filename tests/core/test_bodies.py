"""Bodies that are read at a time, some of which never come to an end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from greensched_core.bodies import SMALL_BYTES, Bodies, BodyTooLarge, TooManyBodies

MOST = 4 * SMALL_BYTES
TOGETHER = 4 * MOST


class Sender:
    """A caller who sends his body piece by piece."""

    def __init__(self, bodies: Bodies) -> None:
        self._messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.reading = asyncio.create_task(bodies.read({"headers": []}, self._messages.get))

    async def send(self, size: int, *, is_last: bool = False) -> None:
        """Send a piece, and let it be read."""
        piece = {"type": "http.request", "body": b"x" * size, "more_body": not is_last}
        self._messages.put_nowait(piece)
        for _ in range(5):
            await asyncio.sleep(0)

    async def end(self) -> int:
        """Return how much was read of him once he has said his last."""
        await self.send(0, is_last=True)
        return len(await self.reading)


async def senders(bodies: Bodies, how_many: int, size: int) -> list[Sender]:
    """Let callers send so much each, one after the other."""
    made = [Sender(bodies) for _ in range(how_many)]
    await asyncio.sleep(0)
    for each in made:
        await each.send(size)
    return made


async def end_all(made: list[Sender]) -> list[int]:
    return [await each.end() for each in made]


@pytest.mark.finding(8)
async def test_a_small_body_finds_room_whatever_is_being_read() -> None:
    bodies = Bodies(MOST, TOGETHER)
    slow = await senders(bodies, 4, MOST - 1)
    (newcomer,) = await senders(bodies, 1, SMALL_BYTES)
    assert await newcomer.end() == SMALL_BYTES
    assert await end_all(slow) == [MOST - 1] * 4, "nobody had to go"


@pytest.mark.finding(8)
async def test_of_too_many_large_bodies_the_one_goes_that_was_read_longest() -> None:
    bodies = Bodies(MOST, TOGETHER)
    slow = await senders(bodies, 4, MOST - 1)
    (newcomer,) = await senders(bodies, 1, SMALL_BYTES + 1)
    with pytest.raises(TooManyBodies):
        await slow[0].reading
    assert await newcomer.end() == SMALL_BYTES + 1
    assert await end_all(slow[1:]) == [MOST - 1] * 3


async def test_who_has_been_read_longest_goes_by_his_own_piece_too() -> None:
    bodies = Bodies(MOST, TOGETHER)
    slow = await senders(bodies, 5, TOGETHER // 5)
    await slow[0].send(5)
    with pytest.raises(TooManyBodies):
        await slow[0].reading
    assert await end_all(slow[1:]) == [TOGETHER // 5] * 4


async def test_who_is_ousted_while_his_next_piece_is_there_is_ousted() -> None:
    bodies = Bodies(MOST, MOST)
    first, second = await senders(bodies, 2, MOST // 2)
    await asyncio.gather(first.send(1), second.send(1), return_exceptions=True)
    with pytest.raises(TooManyBodies):
        await first.reading
    assert await second.end() == MOST // 2 + 1


async def test_many_small_bodies_are_read_at_a_time() -> None:
    bodies = Bodies(MOST, TOGETHER)
    many = await senders(bodies, 2 * TOGETHER // SMALL_BYTES, SMALL_BYTES)
    assert await end_all(many) == [SMALL_BYTES] * len(many)


async def test_a_body_beyond_the_most_is_refused_and_leaves_its_room() -> None:
    bodies = Bodies(MOST, MOST)
    for _ in range(3):
        (one,) = await senders(bodies, 1, MOST)
        await one.send(1)
        with pytest.raises(BodyTooLarge):
            await one.reading
    assert await end_all(await senders(bodies, 1, MOST)) == [MOST]
