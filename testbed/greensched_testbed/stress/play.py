"""Runs the suite once under one strategy, in a new namespace that is deleted afterwards."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from greensched_core.api_paths import JOBS, PODS
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.watching import Watch
from greensched_testbed.creating import create_once, exists
from greensched_testbed.errors import NotReady
from greensched_testbed.replay import ReplayProgress
from greensched_testbed.stress.ground import GridNow, Ground
from greensched_testbed.stress.job_log import JobLog, JobRun, decode_seen
from greensched_testbed.stress.job_objects import Images, job_object, namespace_object, pinned
from greensched_testbed.stress.strategies import DEFAULT, Strategy
from greensched_testbed.stress.suite import MIB, StressJob, StressKind, Suite

_NAMESPACES = "/api/v1/namespaces"
_ACCOUNT_S = 30.0  # time limit for the namespace's service account, which pods need
_GONE_S = 180.0  # time limit for deleting a namespace and its content
_LOOK_EVERY_S = 0.2
_SLOWEST = 5.0  # multiple of the expected runtime that a Job may take on the slowest node
_PULLED_S = 300.0  # time limit for pulling the image on every node
_STARTS_S = 300.0  # time limit for pulling an image and waiting for free capacity


@dataclass(frozen=True, slots=True)
class PlayedSuite:
    """The outcome of the suite in one run; times in seconds since the epoch."""

    strategy: Strategy
    round: int  # from 0
    started_at: float
    ended_at: float
    timed_out: bool
    runs: tuple[JobRun, ...]
    grid: Mapping[str, GridNow]  # by zone, at the start


@dataclass(frozen=True, slots=True)
class Setup:
    """What all runs share: a cluster, its nodes and grids, the images, and a clock."""

    client: ApiClient
    ground: Ground
    images: Images
    clock: Clock


def settle_s(suite: Suite) -> float:
    """Return how long to wait at most for a run's end after the last arrival."""
    longest_s = max((job.runtime_s for job in suite.jobs), default=0.0)
    may_wait_s = max((job.deadline_s or 0.0 for job in suite.jobs), default=0.0)
    return may_wait_s + _SLOWEST * longest_s + _STARTS_S


async def played_suite(
    setup: Setup,
    suite: Suite,
    strategy: Strategy,
    number: int,
    name: str,
    on_progress: Callable[[ReplayProgress], None],
    patience_s: float | None = None,
) -> PlayedSuite:
    """Create the suite's Jobs as they arrive, and return the outcome of each.

    `name` is the namespace's; it is deleted before this returns or ends by cancellation.
    Raises ApiUnavailable if the API server does not answer at first or refuses an object.
    """
    clock, ground = setup.clock, setup.ground
    log = JobLog(suite.jobs, clock, on_progress)
    last_s = max((job.arrival_s for job in suite.jobs), default=0.0)
    limit_s = last_s + (settle_s(suite) if patience_s is None else patience_s)
    bodies = [
        job_object(job, strategy, setup.images, is_played=ground.is_played) for job in suite.jobs
    ]
    async with _namespace(setup.client, name):
        started_at, grid = clock.now(), ground.grid_at(clock.now())
        timed_out = not await _ended(setup.client, name, log, bodies, clock, limit_s)
    return PlayedSuite(strategy, number, started_at, clock.now(), timed_out, log.runs(), grid)


async def pull_images(
    client: ApiClient,
    ground: Ground,
    images: Images,
    name: str,
    clock: Clock,
    limit_s: float = _PULLED_S,
) -> dict[str, str]:
    """Start the plain image once on every node; return the nodes where that failed, and why.

    Otherwise only the first strategy would wait for the pull. `name`: namespace, as for
    `played_suite`.
    """
    small = StressJob("", StressKind.CPU, 0.0, 0.1, 32 * MIB, 0, 1, 0.1)
    jobs = {node: replace(small, name=f"pull-{at}") for at, node in enumerate(ground.nodes)}
    bodies = [
        pinned(job_object(job, DEFAULT, images, is_played=ground.is_played), node)
        for node, job in jobs.items()
    ]
    log = JobLog(tuple(jobs.values()), clock, lambda _: None)
    async with _namespace(client, name):
        await _ended(client, name, log, bodies, clock, limit_s)
    late = f"not within {limit_s:.0f} s"
    return {
        node: ": ".join(filter(None, (run.end or late, run.why)))
        for node, run in zip(jobs, log.runs(), strict=True)
        if run.end != "completed"
    }


async def _ended(
    client: ApiClient,
    namespace: str,
    log: JobLog,
    bodies: Sequence[Mapping[str, Any]],
    clock: Clock,
    limit_s: float,
) -> bool:
    """Create Jobs as they arrive, and return whether all have ended in time."""
    jobs = _within(JOBS, namespace)
    watches = [
        asyncio.create_task(Watch(client, path, decode_seen, log, clock).run())
        for path in (jobs, _within(PODS, namespace))
    ]
    began_s = clock.now()
    try:
        async with asyncio.timeout(limit_s):
            for run, body in zip(log.runs(), bodies, strict=True):
                await asyncio.sleep(max(0.0, began_s + run.job.arrival_s - clock.now()))
                await create_once(client, jobs, msgspec.json.encode(body))
                log.created(run.job.name)
            await log.complete.wait()
    except TimeoutError:
        return False
    finally:
        for watch in watches:
            watch.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
    return True


def _within(path: str, namespace: str) -> str:
    head, _, plural = path.rpartition("/")
    return f"{head}/namespaces/{namespace}/{plural}"


@asynccontextmanager
async def _namespace(client: ApiClient, name: str) -> AsyncIterator[None]:
    """Create a namespace, and delete it when the context is left, also after an exception."""
    await client.create(_NAMESPACES, msgspec.json.encode(namespace_object(name)))
    try:
        account = f"{_NAMESPACES}/{name}/serviceaccounts/default"
        await _until(client, account, _ACCOUNT_S, is_there=True)
        yield
    finally:
        # In a separate task: a second cancellation must not interrupt the deletion.
        await asyncio.shield(asyncio.create_task(_delete(client, name)))


async def _delete(client: ApiClient, name: str) -> None:
    try:
        await client.delete(f"{_NAMESPACES}/{name}")
    except ApiUnavailable as fault:
        if fault.status != 404:
            raise
    await _until(client, f"{_NAMESPACES}/{name}", _GONE_S, is_there=False)


async def _until(client: ApiClient, path: str, limit_s: float, *, is_there: bool) -> None:
    """Wait until an object exists, or is gone; raise NotReady after `limit_s`."""
    try:
        async with asyncio.timeout(limit_s):
            while await exists(client, path) is not is_there:
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError:
        state = "does not exist" if is_there else "still exists"
        raise NotReady(f"{path} {state} after {limit_s:.0f} s") from None
