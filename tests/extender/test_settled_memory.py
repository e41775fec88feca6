"""What is there after the first lists is no work for the garbage collector any more."""

import asyncio
import gc
from collections.abc import Iterator

import pytest

from greensched_core.clock import ManualClock
from greensched_core.watching import WatchHealth
from greensched_extender.gauges import WatchesHealth
from greensched_extender.upkeep import settle_memory


@pytest.fixture
def collector() -> Iterator[None]:
    """Put the garbage collector back as it was."""
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("collector")
async def test_the_cluster_is_out_of_the_collectors_sight_once_the_lists_are_done() -> None:
    nodes = WatchHealth(synced=False, lost_at=None, lists=0)
    watches = WatchesHealth(ManualClock(), needed={"nodes": nodes}, optional={})
    cluster = [{"name": "a"}]

    def is_seen() -> bool:
        return any(known is cluster for known in gc.get_objects())

    task = asyncio.create_task(settle_memory(watches))
    await asyncio.sleep(0)
    assert is_seen(), "the first list is not done"
    nodes.synced = True
    async with asyncio.timeout(20):
        await task
    assert not is_seen()
