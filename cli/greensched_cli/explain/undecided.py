"""The state of a pod that no replica remembers, from the API server, and what it means."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from greensched_cli.reading.api_server import PATIENCE_S, api_access, asking_for
from greensched_core import labels
from greensched_core.clock import WallClock
from greensched_core.durations import format_duration
from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.signals.timestamps import parse_timestamp

_SILENT_S = 10.0  # a running scheduler has set the pod's condition by then
_MOST_NAMED = 3  # pods of a Job
_OURS = f"pods of `schedulerName: {labels.SCHEDULER_NAME}` (or the chart's scheduler.name)"
_CHART = "-l app.kubernetes.io/part-of=greensched"


@dataclass(frozen=True)
class SchedulingCondition:
    """A pod's condition PodScheduled."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True)
class HeldUntil:
    """A hold of ours on a pod or a Job, as its annotations have it; "" if one is missing."""

    planned_start: str
    latest_start: str


@dataclass(frozen=True)
class PodSeen:
    """The fields of a pod that show why there is no decision on it."""

    scheduler: str
    phase: str
    node: str  # "" while it is not bound
    age_s: float
    scheduled: SchedulingCondition | None
    hold: HeldUntil | None = None


@dataclass(frozen=True)
class NoPod:
    """No pod has that name; `of_job`: pods of a Job with that name; `hold`: ours on that Job."""

    of_job: Sequence[str]
    hold: HeldUntil | None = None


class _Meta(msgspec.Struct):
    name: str = ""
    creationTimestamp: str = ""
    deletionTimestamp: str | None = None
    annotations: dict[str, str] | None = None


class _Gate(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct):
    schedulerName: str = ""
    nodeName: str = ""
    schedulingGates: list[_Gate] | None = None


class _JobSpec(msgspec.Struct):
    suspend: bool | None = None


class _ConditionObject(msgspec.Struct):
    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_ConditionObject] | None = None


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class _Job(msgspec.Struct):
    metadata: _Meta
    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)


class _Pods(msgspec.Struct):
    items: list[_Pod]


def look_up(
    namespace: str, name: str, kubeconfig: str | None, context: str | None
) -> PodSeen | NoPod:
    """Return a pod's state from the API server.

    Raises BadInput for an unusable kubeconfig, and ApiUnavailable without an answer.
    """
    return asyncio.run(_looked_up(api_access(kubeconfig, context), namespace, name))


async def _looked_up(access: ApiAccess, namespace: str, name: str) -> PodSeen | NoPod:
    pods = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"
    async with ApiClient(access, timeout_s=PATIENCE_S) as client:
        try:
            with asking_for(f"pod {namespace}/{name}", f"get pods in namespace {namespace}"):
                raw = await client.get(f"{pods}/{quote(name, safe='')}")
        except ApiUnavailable as fault:
            if fault.status != 404:
                raise
            hold = await _hold_of_job(client, namespace, name)
            return NoPod(await _pods_of_job(client, pods, name), hold)
    try:
        return _seen(msgspec.json.decode(raw, type=_Pod), WallClock().now())
    except (msgspec.MsgspecError, UnicodeDecodeError) as fault:  # a proxy's page, say
        raise ApiUnavailable(
            f"pod {namespace}/{name}: the answer is not a pod ({fault}). A proxy may have answered "
            "instead of the API server: check `server` of the cluster in your kubeconfig"
        ) from fault


def about(pod: PodSeen | NoPod, name: str, install_namespace: str | None, was_asked: bool) -> str:
    """Return a pod's state and what it means, in lines; `was_asked`: a replica answered."""
    if isinstance(pod, NoPod):
        if pod.hold is not None:
            return f"There is no pod {name} yet, but a Job. {_held('job', name, pod.hold)}"
        if not pod.of_job:
            return f"There is no pod {name} in the cluster: deleted, or in another --namespace?"
        named = ", ".join(pod.of_job[:_MOST_NAMED])
        return f"There is no pod {name}, but a Job; try one of its pods: {named}"
    state = f"Pod {name}: schedulerName {pod.scheduler}, phase {pod.phase}, "
    state += f"on node {pod.node}" if pod.node else "on no node"
    meaning = _meaning(pod, name, install_namespace, was_asked)
    return "\n".join([state, *_condition(pod), *meaning])


def _condition(pod: PodSeen) -> Iterator[str]:
    condition = pod.scheduled
    if condition is not None and condition.status != "True":
        yield f"PodScheduled is {condition.status} ({condition.reason}): {condition.message}"


def _held(kind: str, name: str, hold: HeldUntil) -> str:
    namespace, _, own = name.partition("/")
    target = f"{kind}/{own} -n {namespace}"
    return (
        f"GreenSched holds it: planned for {hold.planned_start or 'no time yet'}, at the latest "
        f"{hold.latest_start}. Why: `greensched status {target}`. Start it now: "
        f"`greensched release {target}`."
    )


def _meaning(
    pod: PodSeen, name: str, install_namespace: str | None, was_asked: bool
) -> Iterator[str]:
    is_ours = pod.scheduler == labels.SCHEDULER_NAME
    if not is_ours:
        yield f"GreenSched is asked about {_OURS} only."
    if pod.node:
        if is_ours and was_asked:
            yield (
                "It was placed without scores of a replica that runs now. Either only one node "
                "was feasible (kube-scheduler then asks for no scores), or the extender did not "
                "answer, or the replica that answered has restarted or forgotten the decision: "
                "decisions are kept in memory only. Which of these happened is not recorded."
            )
    elif pod.hold is not None:
        yield _held("pod", name, pod.hold)
    elif pod.scheduled is None:
        yield _silence(pod, install_namespace)
    elif pod.scheduled.reason == "SchedulingGated":
        yield "It waits until its scheduling gates are removed."
    elif pod.scheduled.status != "True":
        yield "Its scheduler tries again; it asks for scores once more than one node fits."


def _silence(pod: PodSeen, install_namespace: str | None) -> str:
    if pod.age_s < _SILENT_S:
        return "Its scheduler has not answered yet; ask again in a few seconds."
    silent = f"No scheduler named {pod.scheduler} has answered for {format_duration(pod.age_s)}: "
    if pod.scheduler != labels.SCHEDULER_NAME:
        return silent + "is the name spelt right, and does that scheduler run?"
    where = f"-n {install_namespace}" if install_namespace else "-A"
    return silent + f"does it run? See `kubectl get deploy,pods {where} {_CHART}`."


async def _pods_of_job(client: ApiClient, pods: str, name: str) -> list[str]:
    with suppress(ApiUnavailable, msgspec.MsgspecError):  # the list is only a hint
        raw = await client.get(pods, {"labelSelector": f"job-name={name}"})
        found = msgspec.json.decode(raw, type=_Pods).items
        return [each.metadata.name for each in found if not each.metadata.deletionTimestamp]
    return []


async def _hold_of_job(client: ApiClient, namespace: str, name: str) -> HeldUntil | None:
    """Return our hold on the Job of that name; None without one, or if it cannot be read."""
    jobs = f"/apis/batch/v1/namespaces/{quote(namespace, safe='')}/jobs"
    with suppress(ApiUnavailable, msgspec.MsgspecError):
        job = msgspec.json.decode(await client.get(f"{jobs}/{quote(name, safe='')}"), type=_Job)
        return _hold(job.metadata) if job.spec.suspend else None
    return None


def _hold(meta: _Meta) -> HeldUntil | None:
    written = meta.annotations or {}
    latest = written.get(labels.LATEST_START)
    return HeldUntil(written.get(labels.PLANNED_START, ""), latest) if latest else None


def _seen(pod: _Pod, now_s: float) -> PodSeen:
    scheduled = [
        SchedulingCondition(each.status, each.reason or "no reason", each.message or "no message")
        for each in pod.status.conditions or ()
        if each.type == "PodScheduled"
    ]
    is_gated = any(each.name == labels.GATE for each in pod.spec.schedulingGates or ())
    return PodSeen(
        scheduler=pod.spec.schedulerName,
        phase=pod.status.phase or "unknown",
        node=pod.spec.nodeName,
        age_s=now_s - parse_timestamp(pod.metadata.creationTimestamp),
        scheduled=scheduled[0] if scheduled else None,
        hold=_hold(pod.metadata) if is_gated else None,
    )
