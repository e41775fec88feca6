"""A namespace full of odd annotations does not block the operator while it reads them."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from greensched_core import labels

if TYPE_CHECKING:
    from tests.operator.conftest import Place

pytestmark = pytest.mark.finding(4)
JOBS = 12
NAMES = 8_000  # of one Job: what fits into the 256 KiB that the API server takes
LONGEST_BLOCK_S = 2.0  # a Lease lasts 15; compared one by one, the names of each Job took 1.3 s


def odd_job(place: Place, name: str) -> dict[str, Any]:
    """Return a Job whose annotations have the letters of one of ours, in another order."""
    dice, letters = random.Random(name), "checkpointable"
    odd = {"".join(dice.sample(letters, len(letters))) for _ in range(NAMES)}
    job = place.job(name, deadline="6h")
    job["metadata"]["annotations"] |= {f"{labels.GROUP}/{each}": "" for each in odd}
    return job


@asynccontextmanager
async def measured_blocks(found: list[float]) -> AsyncIterator[None]:
    """Note for how many seconds of its own computing this event loop let nobody else run.

    On a busy machine a second may pass in which the loop is not run at all: that is no block.
    """

    async def look() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.01)
            found.append(time.thread_time() - before)

    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()


async def warned(place: Place) -> set[str]:
    """Return the Jobs about which an event tells of too many annotations."""
    events = (await place.get(f"/api/v1/namespaces/{place.namespace}/events"))["items"]
    return {
        each["involvedObject"]["name"]
        for each in events
        if each["reason"] == "NotHeld" and "more than 32" in each["message"]
    }


async def test_jobs_with_thousands_of_unknown_names_never_block_the_leader(place: Place) -> None:
    await place.green_policy(mode="enforce")
    blocks: list[float] = []
    bodies = [json.dumps(odd_job(place, f"odd-{number}")).encode() for number in range(JOBS)]

    async def all_are_told_of() -> bool:
        return len(await warned(place)) == JOBS

    async with place.controller(), measured_blocks(blocks):
        await asyncio.gather(*(place.api.create(place.jobs, body) for body in bodies))
        await place.until(all_are_told_of, "each is told of, once")
    assert max(blocks) < LONGEST_BLOCK_S


async def test_the_webhook_admits_such_a_job_at_once_and_says_what_is_wrong(place: Place) -> None:
    await place.green_policy(mode="enforce")
    blocks: list[float] = []
    async with place.webhook(), measured_blocks(blocks):
        job = await place.create(place.jobs, odd_job(place, "odd"))
    assert not job["spec"].get("suspend")
    assert max(blocks) < LONGEST_BLOCK_S / 4
