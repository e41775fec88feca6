"""What the API server says of a pod that no replica remembers, and what that means here."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from greensched_cli.reading.api_server import PATIENCE_S, asking_for, core_api
from greensched_core import labels
from greensched_core.durations import format_duration
from greensched_core.errors import ApiUnavailable

_SILENT_S = 10.0  # a scheduler that runs has spoken by then
_MOST_NAMED = 3  # pods of a Job
_OURS = f"pods of `schedulerName: {labels.SCHEDULER_NAME}` (or the chart's scheduler.name)"
_CHART = "-l app.kubernetes.io/part-of=greensched"


@dataclass(frozen=True)
class Condition:
    """A pod's condition PodScheduled."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True)
class PodSeen:
    """A pod, as far as it tells why nothing was decided on it."""

    scheduler: str
    phase: str
    node: str  # "" while it is not bound
    age_s: float
    scheduled: Condition | None


@dataclass(frozen=True)
class NoPod:
    """There is no such pod; `of_job`: pods of a Job that has its name."""

    of_job: Sequence[str]


def look_up(
    namespace: str, name: str, kubeconfig: str | None, context: str | None
) -> PodSeen | NoPod:
    """Return what the API server says of a pod.

    Raises BadInput for a kubeconfig that cannot be used, ApiUnavailable when nobody answers.
    """
    core = core_api(kubeconfig, context)
    try:
        with asking_for(f"pod {namespace}/{name}", f"get pods in namespace {namespace}"):
            pod = core.read_namespaced_pod(name, namespace, _request_timeout=PATIENCE_S)
    except ApiUnavailable as fault:
        if fault.status != 404:
            raise
        return NoPod(_pods_of_job(core, namespace, name))
    return _seen(pod)


def about(pod: PodSeen | NoPod, name: str, extender_namespace: str, was_asked: bool) -> str:
    """Say what is known of a pod and what it means, in lines; `was_asked`: a replica answered."""
    if isinstance(pod, NoPod):
        if not pod.of_job:
            return f"There is no pod {name} in the cluster: deleted, or in another --namespace?"
        named = ", ".join(pod.of_job[:_MOST_NAMED])
        return f"There is no pod {name}, but a Job; try one of its pods: {named}"
    state = f"Pod {name}: schedulerName {pod.scheduler}, phase {pod.phase}, "
    state += f"on node {pod.node}" if pod.node else "on no node"
    return "\n".join([state, *_condition(pod), *_meaning(pod, extender_namespace, was_asked)])


def _condition(pod: PodSeen) -> Iterator[str]:
    told = pod.scheduled
    if told is not None and told.status != "True":
        yield f"PodScheduled is {told.status} ({told.reason}): {told.message}"


def _meaning(pod: PodSeen, extender_namespace: str, was_asked: bool) -> Iterator[str]:
    is_ours = pod.scheduler == labels.SCHEDULER_NAME
    if not is_ours:
        yield f"GreenSched is asked about {_OURS} only."
    if pod.node:
        if is_ours and was_asked:
            yield (
                "It was placed without scores of a replica that runs now. Either only one node "
                "was feasible (kube-scheduler then asks nobody for scores), or the extender was "
                "away, or the replica that answered has restarted or forgotten since: decisions "
                "are kept in memory only. Which of these it was cannot be told afterwards."
            )
    elif pod.scheduled is None:
        yield _silence(pod, extender_namespace)
    elif pod.scheduled.reason == "SchedulingGated":
        yield "It waits until its scheduling gates are removed."
    elif pod.scheduled.status != "True":
        yield "Its scheduler tries again, and asks for scores only once more than one node fits."


def _silence(pod: PodSeen, extender_namespace: str) -> str:
    if pod.age_s < _SILENT_S:
        return "Its scheduler has not spoken yet; ask again in some seconds."
    silent = f"No scheduler named {pod.scheduler} has answered for {format_duration(pod.age_s)}: "
    if pod.scheduler != labels.SCHEDULER_NAME:
        return silent + "is the name spelt right, and does that scheduler run?"
    return silent + f"does it run? See `kubectl -n {extender_namespace} get deploy,pods {_CHART}`."


def _pods_of_job(core: Any, namespace: str, name: str) -> list[str]:
    found: list[Any] = []
    asking = asking_for(f"pods of a Job {name}", f"list pods in namespace {namespace}")
    with suppress(ApiUnavailable), asking:  # a hint, no more
        found = core.list_namespaced_pod(
            namespace, label_selector=f"job-name={name}", _request_timeout=PATIENCE_S
        ).items
    return [str(pod.metadata.name) for pod in found]


def _seen(pod: Any) -> PodSeen:
    conditions = [each for each in pod.status.conditions or () if each.type == "PodScheduled"]
    scheduled = [
        Condition(each.status, each.reason or "no reason", each.message or "nothing said")
        for each in conditions
    ]
    return PodSeen(
        scheduler=pod.spec.scheduler_name or "",
        phase=pod.status.phase or "unknown",
        node=pod.spec.node_name or "",
        age_s=(datetime.now(UTC) - pod.metadata.creation_timestamp).total_seconds(),
        scheduled=scheduled[0] if scheduled else None,
    )
