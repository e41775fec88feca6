"""Reads what `greensched status` shows from the API server, and composes the answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from greensched_cli.explain.explanation import printable
from greensched_cli.reading.api_server import PATIENCE_S
from greensched_cli.reading.cluster_reading import ClusterReading, read_all, read_around
from greensched_cli.reading.held_work import (
    is_ours_to_start,
    is_released,
    read_held,
    read_released,
)
from greensched_cli.reading.local_times import LocalTimes
from greensched_cli.reading.named_work import find_named, parse_target
from greensched_cli.reading.operator_reading import read_state
from greensched_cli.reading.operator_state import OperatorState, advice
from greensched_cli.reading.pieces import UNREADABLE, Pieces, Scope, why_unread, why_unreadable
from greensched_cli.status.json_output import held_json, released_json
from greensched_cli.status.one_work_text import (
    WorkEvent,
    event_lines,
    held_lines,
    released_lines,
    unheld_lines,
)
from greensched_cli.status.text import StatusContent
from greensched_core import labels
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.objects.green_policy import GreenPolicy
from greensched_operator.objects.workloads import Work


@dataclass(frozen=True, slots=True)
class Question:
    """What the user asks, and the cluster that answers."""

    access: ApiAccess
    namespace: str  # "" is all
    name: str | None
    with_released: bool
    install_namespace: str | None


@dataclass(frozen=True, slots=True)
class OneAnswer:
    """The answer on one name: text, and JSON values for each workload of that name."""

    text: str
    documents: Sequence[Mapping[str, Any]]


async def status_content(question: Question, now_s: float) -> StatusContent:
    """Return the held work of a namespace or of all; raise ApiUnavailable if it is unknown."""
    scope = Scope(question.namespace)
    async with ApiClient(question.access, timeout_s=PATIENCE_S) as client:
        reading = await read_all(
            client, scope, question.install_namespace, now_s, with_running=question.with_released
        )
    return _content(reading, scope, now_s, with_released=question.with_released)


def _content(
    reading: ClusterReading, scope: Scope, now_s: float, *, with_released: bool
) -> StatusContent:
    held = [read_held(each, reading.around) for each in reading.works if is_ours_to_start(each)]
    held.sort(key=lambda each: each.planned_s or each.latest_s or float("-inf"))
    released = [read_released(each) for each in reading.works if is_released(each)]
    released.sort(key=lambda each: each.at_s or 0.0, reverse=True)
    policies = _in_force(reading, scope)
    return StatusContent(
        scope=scope.text,
        has_namespaces=not scope.namespace,
        held=held,
        released=released if with_released else None,
        state=reading.state,
        policies=policies,
        advice=advice(reading.state, held, policies, reading.around.refusals, now_s),
        unread=reading.unread,
    )


def _in_force(reading: ClusterReading, scope: Scope) -> dict[str, GreenPolicy]:
    """Return the policy in force in each namespace, for work that names no other."""
    around = reading.around
    if not around.knows_policies:
        return {}
    if scope.namespace:
        return {scope.namespace: around.policy_for(scope.namespace).policy}
    named = {each.namespace for each in reading.works}
    named |= {namespace for namespace, _ in around.policies} - {around.operator_namespace}
    policies = {each: around.policy_for(each).policy for each in sorted(named)}
    return policies | {"all other namespaces": around.policy_for("").policy}


async def ask_one(question: Question, name: str, times: LocalTimes) -> OneAnswer:
    """Return the details of the work of one name; raise ApiUnavailable if they are unknown."""
    target = parse_target(name)
    async with ApiClient(question.access, timeout_s=PATIENCE_S) as client:
        found = await find_named(client, question.namespace, target)
        if not found:
            text = f"There is no {target.text} in namespace {question.namespace}."
            return OneAnswer(text, [])
        state = await read_state(Pieces(client), question.install_namespace, times.now_s)
        answers = [await _about(client, work, state, times) for work in found]
    text = "\n\n".join(each.text for each in answers)
    return OneAnswer(text, [document for each in answers for document in each.documents])


async def _about(
    client: ApiClient, work: Work, state: OperatorState, times: LocalTimes
) -> OneAnswer:
    document: dict[str, Any]
    wrong: list[str] = []
    if is_ours_to_start(work):
        around = await read_around(client, work, state)
        held = read_held(work, around)
        refusals = {title: why for title, why in around.refusals.items() if title == held.policy}
        lines = list(held_lines(held, times))
        document = held_json(held)
        wrong = [f"! {text}." for text in advice(state, [held], {}, refusals, times.now_s)]
    elif is_released(work):
        lines = list(released_lines(read_released(work), times))
        document = released_json(read_released(work))
    else:
        lines = list(unheld_lines(work, _why_unheld(work)))
        document = {"namespace": work.namespace, "kind": str(work.kind), "name": work.name}
    events, refused = await _events(client, work)
    document["events"] = [{"reason": each.reason, "message": each.message} for each in events]
    lines += [*event_lines(events, times), *refused, *wrong]
    return OneAnswer("\n".join(printable(line) for line in lines), [document])


def _why_unheld(work: Work) -> str:
    if work.scheduler != labels.SCHEDULER_NAME:
        return f": its schedulerName is {work.scheduler or 'the default'}, so it has not opted in"
    return ""


class _EventObject(msgspec.Struct):
    reason: str | None = None
    message: str | None = None
    type: str | None = None
    lastTimestamp: str | None = None
    eventTime: str | None = None


class _Events(msgspec.Struct):
    items: list[_EventObject]


async def _events(client: ApiClient, work: Work) -> tuple[list[WorkEvent], list[str]]:
    path = f"/api/v1/namespaces/{work.namespace}/events"
    try:
        raw = await client.get(path, {"fieldSelector": f"involvedObject.uid={work.uid}"})
        return [_event(each) for each in msgspec.json.decode(raw, type=_Events).items], []
    except ApiUnavailable as fault:
        return [], [f"events: {why_unread(fault)}"]
    except UNREADABLE as fault:
        return [], [f"events: {why_unreadable(fault)}"]


def _event(found: _EventObject) -> WorkEvent:
    text = found.lastTimestamp or found.eventTime
    try:
        at_s = parse_timestamp(text) if text else None
    except BadInput:
        at_s = None
    return WorkEvent(at_s, found.reason or "", found.message or "", found.type == "Warning")
