"""Starts held work through the API server alone, so that it works while the operator is dead."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from greensched_cli.reading.api_server import missing_right
from greensched_cli.reading.cluster_reading import read_works
from greensched_cli.reading.held_work import is_ours_to_start, is_released, short_name
from greensched_cli.reading.named_work import Target, find_named
from greensched_cli.reading.pieces import UNREADABLE, Pieces, Scope, why_unread, why_unreadable
from greensched_core import labels
from greensched_core.clock import Clock
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_operator.kueue.api import path_now
from greensched_operator.objects.queue_gate import without_ours
from greensched_operator.objects.release_patch import (
    ReleaseReason,
    media_type,
    object_path,
    release_patch,
)
from greensched_operator.objects.workloads import GatedPod, Work, WorkKind

_AT_ONCE = 8  # patches in flight
_GONE = (404, 409)  # deleted since, or replaced by another object of its name


class ReleaseOutcome(StrEnum):
    """The outcome of releasing one workload."""

    RELEASED = "released"
    WOULD_BE = "would be released"
    RUNS = "not held"  # it runs, has run or is gone: there is nothing to start
    STAYS = "not started"


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome for one workload, with an explanation."""

    name: str  # with its namespace
    outcome: ReleaseOutcome
    text: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether nothing is left to start."""
        return self.outcome != ReleaseOutcome.STAYS

    def document(self) -> dict[str, str | None]:
        """Return the result as JSON values."""
        return {"name": self.name, "outcome": self.outcome, "text": self.text or None}


def run_now_patch(work: Work, at_s: float) -> bytes:
    """Return the patch that starts work and forbids holding it again; safe to repeat."""
    return release_patch(
        work.kind,
        work.uid,
        ReleaseReason.RUN_NOW,
        at_s,
        work.queue_gates,
        more={labels.RUN_NOW: "true"},
    )


class UserReleaser:
    """Starts work with the user's rights."""

    def __init__(self, client: ApiClient, clock: Clock, *, is_dry_run: bool) -> None:
        """Take a client; a dry run sends the same patches, but the API server changes nothing."""
        self._client = client
        self._clock = clock
        self._is_dry_run = is_dry_run

    async def named(self, namespace: str, targets: Sequence[Target]) -> list[Result]:
        """Start the named work and the rest of its gangs; return a result for each."""
        results: list[Result] = []
        held: dict[str, Work] = {}
        for target in targets:
            found = await self._find(namespace, target, results)
            chosen = [each for each in found if is_ours_to_start(each)]
            if len(chosen) > 1:
                text = f"a Job and a pod have that name: use job/{target.name} or pod/{target.name}"
                results.append(Result(f"{namespace}/{target.name}", ReleaseOutcome.STAYS, text))
                continue
            held.update({each.uid: each for each in chosen})
            if not chosen:
                results += map(_not_held, found)
        gang = await self._rest_of_gangs(namespace, list(held.values()), results)
        return [*await self.all(held.values()), *await self.all(gang, "of the same gang"), *results]

    async def all(self, works: Iterable[Work], why: str = "") -> list[Result]:
        """Start all these works; return a result for each."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def release(work: Work) -> Result:
            async with slots:
                return await self._release(work, why)

        return list(await asyncio.gather(*(release(each) for each in works)))

    async def _find(self, namespace: str, target: Target, results: list[Result]) -> list[Work]:
        name = f"{namespace}/{target.text}"
        try:
            found = await find_named(self._client, namespace, target)
        except ApiUnavailable as fault:
            if fault.status is None:
                raise
            right = f"get {target.kinds_text} in namespace {namespace}"
            text = missing_right(fault.status, right) or why_unread(fault)
            results.append(Result(name, ReleaseOutcome.STAYS, text))
            return []
        if not found:
            results.append(Result(name, ReleaseOutcome.STAYS, "nothing has that name"))
        return found

    async def _rest_of_gangs(
        self, namespace: str, held: Sequence[Work], results: list[Result]
    ) -> list[Work]:
        """Return the other held work of the same gangs: the operator starts a gang together."""
        gangs, known = {each.gang for each in held if each.gang}, {each.uid for each in held}
        if not gangs:
            return []
        pieces = Pieces(self._client)
        works = await read_works(pieces, Scope(namespace))
        for part, why in pieces.unread.items():
            text = f"{part} could not be searched for the rest of the gang: {why}"
            results.append(Result(namespace, ReleaseOutcome.STAYS, text))
        return [each for each in works if each.gang in gangs and each.uid not in known]

    async def _release(self, work: Work, why: str) -> Result:
        name = _name(work)
        body, how = run_now_patch(work, self._clock.now()), media_type(work.kind, work.queue_gates)
        try:
            kueue = await path_now(self._client) if work.kind == WorkKind.WORKLOAD else ""
            path = object_path(work.kind, work.namespace, work.name, kueue)
            if self._is_dry_run:
                path += "?dryRun=All"
            raw = await self._client.patch(path, body, how)
        except ApiUnavailable as fault:
            if fault.status in _GONE:
                return Result(name, ReleaseOutcome.RUNS, "it was deleted meanwhile")
            right = f"patch {work.kind}s in namespace {work.namespace}"
            text = missing_right(fault.status, right) or str(fault)
            return Result(name, ReleaseOutcome.STAYS, text)
        text = "; ".join(each for each in (why, _still_waits_for(work, raw)) if each)
        return Result(
            name, ReleaseOutcome.WOULD_BE if self._is_dry_run else ReleaseOutcome.RELEASED, text
        )


def _still_waits_for(work: Work, raw: bytes) -> str:
    """Return what released work still waits for."""
    if work.kind == WorkKind.WORKLOAD:
        return "the operator or the releaser notifies Kueue within seconds"
    if work.queue_gates is not None:
        other_gates = without_ours(work.queue_gates)
        return f"other gates still hold it: {other_gates}" if other_gates else "now Kueue decides"
    return _gates(raw) if work.kind == WorkKind.POD else ""


def _gates(raw: bytes) -> str:
    try:
        gates = msgspec.json.decode(raw, type=GatedPod).spec.schedulingGates or ()
    except UNREADABLE as fault:
        return f"its other gates are not known: {why_unreadable(fault)}"
    names = ", ".join(gate.name for gate in gates)
    return f"other gates still hold it: {names}" if names else ""


def _not_held(work: Work) -> Result:
    if work.is_finished:
        return Result(_name(work), ReleaseOutcome.RUNS, "it has ended")
    if work.is_leaving:
        return Result(_name(work), ReleaseOutcome.RUNS, "it is being deleted")
    if is_released(work) and (not work.is_barred or work.kind == WorkKind.WORKLOAD):
        reason = work.annotations.get(labels.RELEASE_REASON, "")
        at = work.annotations[labels.RELEASED_AT]
        return Result(_name(work), ReleaseOutcome.RUNS, f"it was started at {at} ({reason})")
    if work.is_stopped and work.queue_gates is not None:
        return Result(
            _name(work), ReleaseOutcome.STAYS, "it waits in a Kueue queue, not for GreenSched"
        )
    if work.is_barred:
        text = (
            "GreenSched did not suspend it and does not resume it; to do so yourself: "
            f"kubectl -n {work.namespace} patch job {work.name} "
            """-p '{"spec":{"suspend":false}}'"""
        )
        return Result(_name(work), ReleaseOutcome.STAYS, text)
    return Result(_name(work), ReleaseOutcome.RUNS, "GreenSched does not hold it")


def _name(work: Work) -> str:
    return f"{work.namespace}/{short_name(work)}"
