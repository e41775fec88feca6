"""The Lease is kept apart from the loop that works, and no longer than that loop shows life."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import warnings
from typing import TYPE_CHECKING

import httpx
import pytest

from greensched_core.api_paths import leases_path
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.runtime.leader import LEASES_A_LOOP_MAY_BE_STUCK
from greensched_testbed.creating import exists

if TYPE_CHECKING:
    from tests.operator.conftest import Place

pytestmark = [
    pytest.mark.finding(4),
    # A loop that was blocked for seconds, as only a test does, leaves connections half shut.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
LASTS_S = 1.0


def lease_path(place: Place) -> str:
    return f"{leases_path(place.own)}/{place.settings.lease}"


async def lease_word_s(place: Place) -> float | None:
    """Return when the holder of the Lease spoke last; None where nobody holds it."""
    if not await exists(place.api, lease_path(place)):
        return None
    spec = (await place.get(lease_path(place)))["spec"]
    return parse_timestamp(spec["renewTime"]) if spec["holderIdentity"] else None


def silence_s(place: Place, blocked_s: float) -> float:
    """Block this event loop, and return how long the holder had been silent at the end of that."""
    url = f"{place.access.base_url}{lease_path(place)}"
    found: list[float] = []

    def look() -> None:
        time.sleep(blocked_s)
        reply = httpx.get(url, verify=place.access.verify, trust_env=False)
        found.append(time.time() - parse_timestamp(reply.json()["spec"]["renewTime"]))

    looking = threading.Thread(target=look)
    looking.start()
    looking.join()  # as code does that lets nobody else run
    return found[0]


@pytest.mark.parametrize(
    ("leases", "is_kept"),
    [
        pytest.param(1.5, True, id="a-loop-that-works-hard"),
        pytest.param(LEASES_A_LOOP_MAY_BE_STUCK + 1.5, False, id="a-loop-that-is-stuck"),
    ],
)
async def test_a_busy_loop_keeps_the_lease_and_a_stuck_one_does_not(
    place: Place, leases: float, is_kept: bool
) -> None:
    place.settings = place.settings.model_copy(update={"lease_duration_s": LASTS_S})

    async def is_led() -> bool:
        return await lease_word_s(place) is not None

    async with place.controller():
        await place.until(is_led, "it leads")
        await asyncio.sleep(1.0)
        silent_s = silence_s(place, leases * LASTS_S)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    assert (silent_s < LASTS_S) == is_kept
