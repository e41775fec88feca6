"""Reads what `greensched status` tells, piece by piece: what cannot be read is told, and left out.

Each piece needs a right of its own; a user of one namespace has few of them.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from greensched_cli.reading.held_work import Surroundings, is_ours_to_start, is_released
from greensched_cli.reading.operator_reading import read_state
from greensched_cli.reading.operator_state import OperatorState, Part
from greensched_cli.reading.queued_work import read_queued
from greensched_core import labels
from greensched_core.api_paths import UNBOUND
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.holding.acceptance import refusal_in
from greensched_operator.objects.cron_jobs import CronJob, read_cron_job
from greensched_operator.objects.green_policy import GreenPolicy, parse
from greensched_operator.objects.resource_fields import decoded_object
from greensched_operator.objects.workloads import Kind, Work, decode_work

Value = TypeVar("Value")
_FORBIDDEN, _NOT_FOUND = 403, 404


@dataclass(frozen=True, slots=True)
class Scope:
    """Which namespace is looked at; "" is all."""

    namespace: str

    def path(self, group: str, plural: str) -> str:
        """Return where objects are listed."""
        where = f"/namespaces/{self.namespace}" if self.namespace else ""
        return f"{group}{where}/{plural}"

    @property
    def told(self) -> str:
        """Return it in words."""
        return f"namespace {self.namespace}" if self.namespace else "all namespaces"


@dataclass(frozen=True, slots=True)
class Reading:
    """All that could be read at one moment."""

    works: tuple[Work, ...]
    around: Surroundings
    state: OperatorState
    unread: Mapping[Part, str]


@dataclass(slots=True)
class Pieces:
    """Reads pieces, and keeps why some could not be."""

    client: ApiClient
    unread: dict[Part, str] = field(default_factory=dict)

    async def listed(
        self, part: Part, path: str, read: Callable[[bytes], Value], *, field_selector: str = ""
    ) -> list[Value]:
        """Return what `read` makes of each object; none, and a reason, where it is refused.

        Raises ApiUnavailable when the API server is not there, or does not know who we are.
        """
        found: list[Value] = []
        try:
            async for raw in self._objects(path, field_selector):
                try:
                    found.append(read(raw))
                except BadInput as fault:
                    self.unread[part] = f"one of them, {fault}"
        except ApiUnavailable as fault:
            self.refused(part, fault)
        return found

    async def _objects(self, path: str, field_selector: str) -> AsyncIterator[bytes]:
        async for page in self.client.pages(path, field_selector=field_selector):
            for item in page.items:
                yield bytes(item)

    def refused(self, part: Part, fault: ApiUnavailable) -> None:
        """Note why a piece is not known."""
        if fault.status is None or fault.status == 401:
            raise fault
        self.unread[part] = refusal(fault)


def refusal(fault: ApiUnavailable) -> str:
    """Say in a few words why something was refused."""
    if fault.status == _FORBIDDEN:
        return "you have no right to read them"
    if fault.status == _NOT_FOUND:
        return "the API server does not know them: the chart's custom resources are not installed"
    return str(fault)


async def read_all(
    client: ApiClient,
    scope: Scope,
    operator_namespace: str | None,
    now_s: float,
    *,
    with_running: bool,
) -> Reading:
    """Return what is held and the operator's state; `with_running`: also work that runs or ran.

    Raises ApiUnavailable when nobody answers, or neither Jobs nor pods may be listed.
    """
    pieces = Pieces(client)
    works, state = await asyncio.gather(
        read_works(pieces, scope, with_running=with_running),
        read_state(pieces, operator_namespace, now_s),
    )
    around = await _surroundings(pieces, works, scope, state.namespace)
    return Reading(works, around, state, pieces.unread)


async def read_works(
    pieces: Pieces, scope: Scope, *, with_running: bool = False
) -> tuple[Work, ...]:
    """Return what we hold; `with_running`: also what we have started.

    Raises ApiUnavailable when nobody answers, or neither Jobs nor pods may be listed.
    """
    selector = "" if with_running else UNBOUND
    jobs, pods = await asyncio.gather(
        pieces.listed(Part.JOBS, scope.path("/apis/batch/v1", "jobs"), _reader(Kind.JOB)),
        pieces.listed(
            Part.PODS, scope.path("/api/v1", "pods"), _reader(Kind.POD), field_selector=selector
        ),
    )
    if {Part.JOBS, Part.PODS} <= pieces.unread.keys():
        hint = "" if scope.namespace else "; name a namespace of yours with -n"
        why = pieces.unread[Part.JOBS]
        raise ApiUnavailable(f"Jobs and pods of {scope.told} cannot be listed: {why}{hint}")
    queued = await read_queued(pieces, scope, jobs)
    return tuple(
        each
        for each in (*jobs, *pods, *queued)
        if is_ours_to_start(each) or (with_running and is_released(each))
    )


async def read_held_works(
    client: ApiClient, namespace: str
) -> tuple[tuple[Work, ...], Mapping[Part, str]]:
    """Return what we hold in a namespace ("" is all), and what could not be listed, with why."""
    pieces = Pieces(client)
    return await read_works(pieces, Scope(namespace)), pieces.unread


async def read_around(client: ApiClient, work: Work, state: OperatorState) -> Surroundings:
    """Return what one workload is judged by."""
    return await _surroundings(Pieces(client), [work], Scope(work.namespace), state.namespace)


async def _surroundings(
    pieces: Pieces, works: Sequence[Work], scope: Scope, operator_namespace: str
) -> Surroundings:
    group = f"/apis/{labels.GROUP}/{labels.VERSION}"
    scopes = [scope]
    if scope.namespace and scope.namespace != operator_namespace:
        scopes.append(Scope(operator_namespace))
    found: list[tuple[GreenPolicy, str]] = []
    for each in scopes:
        path = each.path(group, labels.GREEN_POLICIES)
        found += await pieces.listed(Part.POLICIES, path, _read_policy)
    crons: list[CronJob] = []
    if any(work.owner is not None and work.owner.kind == "CronJob" for work in works):
        path = scope.path("/apis/batch/v1", "cronjobs")
        crons = await pieces.listed(Part.CRON_JOBS, path, read_cron_job)
    return Surroundings(
        {(each.namespace, each.name): each for each, _ in found},
        {(each.namespace, each.name): each for each in crons},
        operator_namespace,
        knows_policies=Part.POLICIES not in pieces.unread,
        refusals={each.title: why for each, why in found if why},
    )


def _read_policy(raw: bytes) -> tuple[GreenPolicy, str]:
    """Return a GreenPolicy, and why the operator does not follow it as it is written, or ""."""
    whole = decoded_object(raw)
    return parse(whole), refusal_in(whole.get("status"))


def _reader(kind: Kind) -> Callable[[bytes], Work]:
    return lambda raw: decode_work(kind, raw)
