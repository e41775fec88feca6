"""Placements: records of bound pods with the extenders' decisions.

Extenders serve their decisions only on their pods' loopback interface. The caller knows how to
reach them: this module takes an async function that asks every replica. In a cluster that can be
the API server's pods/portforward, as in `greensched explain`, which needs the permission in
GreenSched's own namespace. Without it, a placement is recorded with its node and nothing else.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from greensched_core.errors import BadInput
from greensched_core.ledger_records import Amounts, InputAge, LedgerRecord, Subject, What
from greensched_core.objects import workload_of
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.objects.placed_pods import PlacedPod

_KEPT_CANDIDATES = 5  # the cheapest; the chosen one is kept too, but thousands of others are not

RawDecision = Mapping[str, Any]  # as an extender's explain route returns it
# Returns each reachable replica's answer to GET /v1/decisions/<namespace>/<pod>. If it raises, the
# placement is recorded without a decision.
AskReplicas = Callable[[str, str], Awaitable[Sequence[Mapping[str, Any]]]]


async def placement_of(pod: PlacedPod, ask: AskReplicas, now: float) -> LedgerRecord | None:
    """Return the record of a pod's placement, with its latest decision; None while unbound."""
    if not pod.spec.nodeName or not pod.metadata.uid:
        return None
    try:
        answers = await ask(pod.metadata.namespace, pod.metadata.name)
    # A placement without its decision is better than none.
    except Exception:  # noqa: BLE001 - for any reason that replicas do not answer
        answers = ()
    return placed(pod, latest(answers, pod.metadata.uid), now)


def latest(answers: Iterable[Mapping[str, Any]], uid: str) -> RawDecision | None:
    """Return the newest decision on the pod with this UID in replicas' answers; None if absent."""
    listed = (answer.get("decisions") for answer in answers)
    mine = [
        decision
        for decisions in listed
        if isinstance(decisions, list)
        for decision in decisions
        if isinstance(decision, dict)
        and _part(decision, "pod").get("uid") == uid
        and _number(decision.get("decidedAt")) is not None
    ]
    return max(mine, key=lambda decision: float(decision["decidedAt"]), default=None)


def placed(pod: PlacedPod, decision: RawDecision | None, now: float) -> LedgerRecord | None:
    """Return the record of a bound pod; None if it is not bound or has no UID.

    `now` is the record's time if the pod does not say when it was scheduled.
    """
    node, made = pod.spec.nodeName, decision or {}
    if not node or not pod.metadata.uid:
        return None
    chosen = next((each for each in _candidates(made) if each.get("node") == node), {})
    zone = chosen.get("zone")
    return LedgerRecord(
        what=What.PLACED,
        at=_scheduled_at(pod) or now,
        subject=_subject(pod),
        policy=_text(made.get("policy")),
        reason=_text(made.get("why")),
        zone=_text(zone),
        input_ages=_ages(made, zone),
        expected_runtime_s=_number(chosen.get("runtimeSeconds")),
        planned=Amounts(
            _number(chosen.get("energyJoules")),
            _number(chosen.get("carbonGrams")),
            _number(chosen.get("cost")),
        ),
        currency=_text(chosen.get("currency")),
        node=node,
        decision=json.dumps(_short(made, node), separators=(",", ":")) if made else None,
    )


def _subject(pod: PlacedPod) -> Subject:
    asked = workload_of(pod)
    owner = pod.metadata.maker
    return Subject(
        kind="Pod",
        namespace=asked.namespace,
        name=asked.name,
        uid=asked.uid,
        owner=f"{owner.kind}/{owner.name}" if owner else None,
        cpu_cores=asked.cpu_cores,
        memory_bytes=asked.memory_bytes,
        gpus=asked.gpus,
    )


def _scheduled_at(pod: PlacedPod) -> float | None:
    for condition in pod.status.conditions or ():
        is_bound = condition.type == "PodScheduled" and condition.status == "True"
        if is_bound and condition.lastTransitionTime:
            try:
                return parse_timestamp(condition.lastTransitionTime)
            except BadInput:
                return None
    return None


def _ages(decision: RawDecision, zone: object) -> tuple[InputAge, ...]:
    mine = [each for each in _listed(decision, "zones") if each.get("zone") == zone]
    ages = {"snapshot": _number(decision.get("snapshotAgeSeconds"))}
    for each in mine[:1]:
        ages["carbon"] = _number(each.get("carbonAgeSeconds"))
        ages["price"] = _number(each.get("priceAgeSeconds"))
    return tuple(InputAge(name, age_s) for name, age_s in ages.items() if age_s is not None)


def _short(decision: RawDecision, node: str) -> dict[str, Any]:
    """Return the decision with its cheapest candidates and the chosen one, and count the others."""
    candidates = _candidates(decision)
    kept = [
        each
        for number, each in enumerate(candidates)
        if number < _KEPT_CANDIDATES or each.get("node") == node
    ]
    left_out = len(candidates) - len(kept)
    return {**decision, "candidates": kept, "candidatesLeftOut": left_out}


def _candidates(decision: RawDecision) -> list[dict[str, Any]]:
    return _listed(decision, "candidates")


def _listed(decision: RawDecision, key: str) -> list[dict[str, Any]]:
    found = decision.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _part(decision: RawDecision, key: str) -> Mapping[str, Any]:
    found = decision.get(key)
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return None
