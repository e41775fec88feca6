"""Reads held work, the policies and CronJobs that decide on it, and the operator's state."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from greensched_cli.reading.held_work import HoldSurroundings, is_ours_to_start, is_released
from greensched_cli.reading.operator_reading import read_state
from greensched_cli.reading.operator_state import ClusterPart, OperatorState
from greensched_cli.reading.pieces import NO_RIGHT, Pieces, Scope
from greensched_cli.reading.queued_work import read_queued
from greensched_core import labels
from greensched_core.api_paths import UNBOUND
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.holding.acceptance import refusal_in
from greensched_operator.objects.cron_jobs import CronJob, read_cron_job
from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_operator.objects.resource_fields import decoded_object
from greensched_operator.objects.workloads import Work, WorkKind, decode_work


@dataclass(frozen=True, slots=True)
class ClusterReading:
    """Everything that could be read at one moment."""

    works: tuple[Work, ...]
    around: HoldSurroundings
    state: OperatorState
    unread: Mapping[ClusterPart, str]


async def read_all(
    client: ApiClient,
    scope: Scope,
    operator_namespace: str | None,
    now_s: float,
    *,
    with_running: bool,
) -> ClusterReading:
    """Return held work and the operator's state; `with_running`: also work that runs or ran.

    Raises ApiUnavailable without an answer, or if neither Jobs nor pods may be listed.
    """
    pieces = Pieces(client)
    works, state = await asyncio.gather(
        read_works(pieces, scope, with_running=with_running),
        read_state(pieces, operator_namespace, now_s),
    )
    around = await _surroundings(pieces, works, scope, state.namespace)
    return ClusterReading(works, around, state, pieces.unread)


async def read_works(
    pieces: Pieces, scope: Scope, *, with_running: bool = False
) -> tuple[Work, ...]:
    """Return the work that we hold; `with_running`: also the work that we have started.
    Raises ApiUnavailable without an answer, or if neither Jobs nor pods may be listed.
    """
    selector = "" if with_running else UNBOUND
    jobs, pods = await asyncio.gather(
        pieces.listed(
            ClusterPart.JOBS, scope.path("/apis/batch/v1", "jobs"), _reader(WorkKind.JOB)
        ),
        pieces.listed(
            ClusterPart.PODS,
            scope.path("/api/v1", "pods"),
            _reader(WorkKind.POD),
            field_selector=selector,
        ),
    )
    if {ClusterPart.JOBS, ClusterPart.PODS} <= pieces.unread.keys():
        hint = "" if scope.namespace else "; name a namespace of yours with -n"
        why = pieces.unread[ClusterPart.JOBS]
        text = f"Jobs and pods of {scope.text} cannot be listed: {why}{hint}"
        raise ApiUnavailable(text, 403 if why == NO_RIGHT else None)
    queued = await read_queued(pieces, scope, jobs)
    return tuple(
        each
        for each in (*jobs, *pods, *queued)
        if is_ours_to_start(each) or (with_running and is_released(each))
    )


async def read_held_works(
    client: ApiClient, namespace: str
) -> tuple[tuple[Work, ...], Mapping[ClusterPart, str]]:
    """Return the work we hold in a namespace ("" is all), and why parts could not be listed."""
    pieces = Pieces(client)
    return await read_works(pieces, Scope(namespace)), pieces.unread


async def read_around(client: ApiClient, work: Work, state: OperatorState) -> HoldSurroundings:
    """Return the policies and CronJobs that decide on one workload."""
    return await _surroundings(Pieces(client), [work], Scope(work.namespace), state.namespace)


async def _surroundings(
    pieces: Pieces, works: Sequence[Work], scope: Scope, operator_namespace: str
) -> HoldSurroundings:
    scopes = [scope]
    if scope.namespace and scope.namespace != operator_namespace:
        scopes.append(Scope(operator_namespace))
    found: list[tuple[GreenPolicy, str]] = []
    for each in scopes:
        path = each.path(labels.API, labels.GREEN_POLICIES)
        found += await pieces.listed(ClusterPart.POLICIES, path, _read_policy)
    crons: list[CronJob] = []
    if any(work.owner is not None and work.owner.kind == "CronJob" for work in works):
        path = scope.path("/apis/batch/v1", "cronjobs")
        crons = await pieces.listed(ClusterPart.CRON_JOBS, path, read_cron_job)
    return HoldSurroundings(
        {(each.namespace, each.name): each for each, _ in found},
        {(each.namespace, each.name): each for each in crons},
        operator_namespace,
        knows_policies=ClusterPart.POLICIES not in pieces.unread,
        refusals={each.title: why for each, why in found if why},
    )


def _read_policy(raw: bytes) -> tuple[GreenPolicy, str]:
    """Return a GreenPolicy, and why the operator does not follow it as written, or ""."""
    whole = decoded_object(raw)
    return parse(whole), refusal_in(whole.get("status"))


def _reader(kind: WorkKind) -> Callable[[bytes], Work]:
    return lambda raw: decode_work(kind, raw)
