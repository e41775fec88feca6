"""Held work and the operator's state, as JSON for programs.

Times are RFC 3339 in UTC; null means unknown. Fields are added, never renamed.
"""

from typing import Any

from greensched_cli.reading.held_work import HeldWork, ReleasedWork
from greensched_cli.reading.operator_state import ClusterPart, OperatorState
from greensched_cli.status.text import StatusContent
from greensched_core.signals.timestamps import format_timestamp


def as_json(content: StatusContent, now_s: float) -> dict[str, Any]:
    """Return an answer as JSON values."""
    document: dict[str, Any] = {
        "at": _time(now_s),
        "scope": content.scope,
        "held": [held_json(each) for each in content.held],
        "heldCount": len(content.held),
        "heldCpuCores": sum(each.work.cpu_cores for each in content.held),
        "operator": _operator(content.state),
        "policies": {
            namespace: {"name": policy.title, "mode": str(policy.mode)}
            for namespace, policy in sorted(content.policies.items())
        },
        "advice": list(content.advice),
        "unread": {str(part): why for part, why in content.unread.items()},
    }
    if content.released is not None:
        document["released"] = [released_json(each) for each in content.released]
    return document


def held_json(held: HeldWork) -> dict[str, Any]:
    """Return one held workload as JSON values."""
    decision = held.decision
    return {
        "namespace": held.work.namespace,
        "kind": str(held.work.kind),
        "name": held.work.name,
        "uid": held.work.uid,
        "cpuCores": held.work.cpu_cores,
        "heldSince": _time(held.held_s),
        "plannedStart": _time(held.planned_s),
        "latestStart": _time(held.latest_s),
        "latestStartBound": held.bound or None,
        "deadline": _time(held.deadline_s),
        "runtime": held.runtime or None,
        "savingShare": decision.saving if decision else None,
        "carbonChangeShare": decision.carbonChange if decision else None,
        "costChangeShare": decision.costChange if decision else None,
        "carbonGramsPerKwh": decision.carbonGramsPerKwh[0] if decision else None,
        "carbonGramsPerKwhIfNow": decision.carbonGramsPerKwh[1] if decision else None,
        "lateChanceShare": decision.lateChance if decision else None,
        "zone": (decision.zone or None) if decision else None,
        "policy": held.policy or None,
        "reason": held.reason or None,
        "faults": list(held.faults),
    }


def released_json(each: ReleasedWork) -> dict[str, Any]:
    """Return one workload that was held and started, as JSON values."""
    return {
        "namespace": each.work.namespace,
        "kind": str(each.work.kind),
        "name": each.work.name,
        "uid": each.work.uid,
        "heldSince": _time(each.held_s),
        "releasedAt": _time(each.at_s),
        "reason": each.reason or None,
    }


def _operator(state: OperatorState) -> dict[str, Any]:
    leader = state.leader
    return {
        "namespace": state.namespace,
        "leader": (leader.holder or None) if leader else None,
        "isAlive": leader.is_alive
        if leader
        else (False if state.knows(ClusterPart.LEASE) else None),
        "silentSeconds": _seconds(leader.silent_s) if leader else None,
        "releasersReady": state.releasers[0] if state.knows(ClusterPart.RELEASER) else None,
        "heartbeatAgeSeconds": _seconds(state.heartbeat_age_s),
        "webhooks": [{"name": one.name, "isTrusted": one.is_trusted} for one in state.webhooks]
        if state.knows(ClusterPart.WEBHOOK)
        else None,
        "isEmergencyRelease": state.is_emergency_release
        if state.knows(ClusterPart.EMERGENCY_RELEASE)
        else None,
        "signals": [
            {"zone": one.zone, "source": one.source or None, "ageSeconds": _seconds(one.age_s)}
            for one in state.signals
        ]
        if state.knows(ClusterPart.SIGNALS)
        else None,
    }


def _time(at_s: float | None) -> str | None:
    return None if at_s is None else format_timestamp(round(at_s))


def _seconds(age_s: float | None) -> float | None:
    return None if age_s is None else round(age_s, 1)
