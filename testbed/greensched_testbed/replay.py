"""Replays a trace on any cluster: creates pods when their tasks arrive, and watches them.

Times are read from our own clock when the watch reports a change. Creation, binding and end are
thus measured alike, independent of the cluster's clocks.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from greensched_core import labels
from greensched_core.clock import Clock, WallClock
from greensched_core.errors import ApiUnavailable, BadInput
from greensched_core.kubernetes_api import ApiAccess, ApiClient
from greensched_core.watching import Watch
from greensched_simulator.formats.workload import Task, Trace
from greensched_testbed.creating import create_once
from greensched_testbed.pod_conditions import PodCondition, why_unplaced

TESTBED_RUNTIME = f"{labels.GROUP}/testbed-runtime"  # annotation that kwok's stages read
_AT_ONCE = 8  # concurrent creations; httpx's overhead grows with the square of its connections
_RETRY_S = 0.5
_MOST_REASONS = 5
_GONE_FOR_GOOD = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class ReplayedPod:
    """The outcome of one task; times in seconds since the epoch, None: did not happen."""

    task: Task
    created_at: float | None = None
    bound_at: float | None = None
    node: str = ""
    finished_at: float | None = None
    phase: str = ""
    why_pending: str = ""  # a scheduler's last reason why no node fits; "" if there is none


@dataclass(frozen=True, slots=True)
class ReplayProgress:
    """The progress of a replay, in pods."""

    total: int
    created: int
    bound: int
    finished: int


@dataclass(frozen=True, slots=True)
class Replay:
    """The record of one replay."""

    runs: tuple[ReplayedPod, ...]
    started_at: float
    ended_at: float
    wall_s_per_trace_s: float
    timed_out: bool

    @property
    def unplaced(self) -> tuple[ReplayedPod, ...]:
        """Return the pods that were not bound to a node."""
        return tuple(run for run in self.runs if not run.node)


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """How to replay.

    wall_s_per_trace_s: 0.01 replays a trace a hundred times faster, including runtimes.
    until: `bound` returns when every pod has a node, `finished` when every pod has ended.
    settle_timeout_s: wall seconds after the last arrival at which the replay ends at the latest.
    sleeps: containers sleep for their runtime, for nodes that kwok does not simulate.
    has_deadlines: pods have their tasks' deadlines as annotations, in seconds of the trace.
    zone_of: the grid zone that a task's pod must run in, by the task's name.
    """

    namespace: str
    scheduler_name: str = "default-scheduler"
    wall_s_per_trace_s: float = 1.0
    until: Literal["bound", "finished"] = "finished"
    settle_timeout_s: float = 120.0
    sleeps: bool = False
    has_deadlines: bool = False
    zone_of: Mapping[str, str] = field(default_factory=dict)


async def replay(
    trace: Trace,
    access: ApiAccess,
    options: ReplayOptions,
    *,
    on_progress: Callable[[ReplayProgress], None] = lambda _: None,
    clock: Clock | None = None,
) -> Replay:
    """Create the trace's pods as they arrive, watch them, and return the outcome of each.

    The namespace must exist. Requests to an API server that goes away are retried until the
    timeout. Raises BadInput, before creating anything, if the namespace has pods of these names,
    and ApiUnavailable if the API server does not answer at first or refuses a pod (HTTP 4xx).
    """
    clock = clock or WallClock()
    async with ApiClient(access) as client:
        pods = f"/api/v1/namespaces/{options.namespace}/pods"
        await _refuse_present(trace, client, pods, options.namespace)
        log = _PodLog(trace, options.until, clock, on_progress)
        watching = asyncio.create_task(Watch(client, pods, _decode, log, clock).run())
        started_at = clock.now()
        timed_out = False
        try:
            async with asyncio.timeout(
                _last_arrival(trace) * options.wall_s_per_trace_s + options.settle_timeout_s
            ):
                await _submit(trace, client, pods, options)
                await _first_of(watching, log.complete)
        except TimeoutError:
            timed_out = True
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    return Replay(log.runs(), started_at, clock.now(), options.wall_s_per_trace_s, timed_out)


def pending_reasons(record: Replay, scheduler: str) -> Iterator[str]:
    """Yield the reasons why pods found no node, the most frequent first, at most five."""
    names: dict[str, list[str]] = {}
    for run in record.unplaced:
        names.setdefault(run.why_pending, []).append(run.task.name)
    by_count = sorted(names.items(), key=lambda item: -len(item[1]))
    for reason, pods in by_count[:_MOST_REASONS]:
        some = ", ".join(pods[:3]) + (f" and {len(pods) - 3} more" if len(pods) > 3 else "")
        why = reason or f"no scheduler named {scheduler} has answered; check that one runs there"
        yield f"{some}: {why}"
    if len(by_count) > _MOST_REASONS:
        yield f"and {len(by_count) - _MOST_REASONS} more reasons"


async def delete_pods(access: ApiAccess, namespace: str, timeout_s: float = 60.0) -> None:
    """Delete all pods of a namespace without grace, and wait until they are gone.

    Raises TimeoutError if some still exist after `timeout_s`.
    """
    async with ApiClient(access) as client, asyncio.timeout(timeout_s):
        pods = f"/api/v1/namespaces/{namespace}/pods"
        await client.delete(pods, {"gracePeriodSeconds": 0})
        while [
            page async for page in client.pages(pods) if page.items
        ]:  # the server has no event for "none left"
            await asyncio.sleep(_RETRY_S)


def pod_object(task: Task, options: ReplayOptions) -> dict[str, Any]:
    """Return the pod of a task as a JSON value."""
    requests = {
        labels.CPU: f"{max(1, round(task.cpu_cores * 1000))}m",
        labels.MEMORY: str(round(task.memory_bytes)),
    }
    resources: dict[str, Any] = {"requests": requests}
    wall_s = max(0.001, task.runtime_s * options.wall_s_per_trace_s)
    if task.gpus:
        requests[labels.NVIDIA_GPU] = str(task.gpus)
        resources["limits"] = {labels.NVIDIA_GPU: str(task.gpus)}
    spec: dict[str, Any] = {
        "schedulerName": options.scheduler_name,
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", **_program(wall_s, options), "resources": resources}],
    }
    if task.gpu_models:
        spec["affinity"] = _gpu_affinity(task.gpu_models)
    if task.name in options.zone_of:
        spec["nodeSelector"] = {labels.GRID_ZONE: options.zone_of[task.name]}
    annotations = {
        labels.RUNTIME: f"{max(0.001, task.runtime_s):.3f}s",
        TESTBED_RUNTIME: f"{wall_s:.3f}s",
    }
    if options.has_deadlines and task.deadline_s is not None:
        annotations[labels.DEADLINE] = f"{task.deadline_s - task.arrival_s:.0f}s"
    metadata = {"name": task.name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _program(wall_s: float, options: ReplayOptions) -> dict[str, Any]:
    if options.sleeps:
        return {"image": "busybox:1.37", "command": ["sleep", f"{wall_s:.3f}"]}
    return {"image": "registry.k8s.io/pause:3.10"}  # kwok pulls and runs nothing


def _gpu_affinity(models: tuple[str, ...]) -> dict[str, Any]:
    expression = {"key": labels.GPU_PRODUCT, "operator": "In", "values": list(models)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _last_arrival(trace: Trace) -> float:
    return trace.tasks[-1].arrival_s if trace.tasks else 0.0


async def _refuse_present(trace: Trace, client: ApiClient, pods: str, namespace: str) -> None:
    names = {task.name for task in trace.tasks}
    present = [
        pod.metadata.name
        async for page in client.pages(pods)
        for pod in map(_decode, page.items)
        if pod.metadata.name in names
    ]
    if present:
        raise BadInput(
            f"namespace {namespace} already holds {len(present)} of these {len(names)} pods "
            f"({present[0]}, for one), as after an earlier replay: delete the namespace, or name "
            "another with --namespace"
        )


async def _first_of(watching: asyncio.Task[None], complete: asyncio.Event) -> None:
    """Wait until all is complete; if the watch ended, which only a bug causes, raise its error."""
    waiting = asyncio.create_task(complete.wait())
    try:
        await asyncio.wait({watching, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            watching.result()
    finally:
        waiting.cancel()


async def _submit(trace: Trace, client: ApiClient, pods: str, options: ReplayOptions) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    gate = asyncio.Semaphore(_AT_ONCE)

    async def submit(task: Task) -> None:
        async with gate:
            await create_once(client, pods, msgspec.json.encode(pod_object(task, options)))

    try:
        async with asyncio.TaskGroup() as submissions:
            for task in trace.tasks:
                due = began + task.arrival_s * options.wall_s_per_trace_s
                await asyncio.sleep(max(0.0, due - loop.time()))
                submissions.create_task(submit(task))
    except* ApiUnavailable as refusals:
        raise refusals.exceptions[0] from None


class _Metadata(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct):
    nodeName: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[PodCondition] = []


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec
    status: _Status


_decode = msgspec.json.Decoder(_Pod).decode


class _PodLog:
    """Records when the watch first reports each change; the only writer of the runs."""

    def __init__(
        self,
        trace: Trace,
        until: Literal["bound", "finished"],
        clock: Clock,
        on_progress: Callable[[ReplayProgress], None],
    ) -> None:
        self.complete = asyncio.Event()
        self._runs = {task.name: ReplayedPod(task) for task in trace.tasks}
        self._open = set(self._runs)
        self._until = until
        self._clock = clock
        self._on_progress = on_progress
        self._created = self._bound = self._finished = 0
        if not self._open:
            self.complete.set()

    def runs(self) -> tuple[ReplayedPod, ...]:
        """Return each task's outcome so far, in the trace's order."""
        return tuple(self._runs.values())

    def list_began(self) -> None:
        """Do nothing: a full list only repeats existing pods."""

    def list_ended(self) -> None:
        """Do nothing: a pod missing from a list keeps its last state."""

    def upsert(self, item: _Pod) -> None:
        """Record a pod's creation, node and end when they are new."""
        run = self._runs.get(item.metadata.name)
        if run is None:
            return  # not a pod of this replay
        now = self._clock.now()
        node, phase = item.spec.nodeName, item.status.phase
        is_new, is_newly_bound = run.created_at is None, bool(node) and run.bound_at is None
        is_newly_finished = phase in _GONE_FOR_GOOD and run.finished_at is None
        self._runs[item.metadata.name] = ReplayedPod(
            task=run.task,
            created_at=now if is_new else run.created_at,
            bound_at=now if is_newly_bound else run.bound_at,
            node=node or run.node,
            finished_at=now if is_newly_finished else run.finished_at,
            phase=phase,
            why_pending=why_unplaced(item.status.conditions),
        )
        self._created += is_new
        self._bound += is_newly_bound
        self._finished += is_newly_finished
        if is_new or is_newly_bound or is_newly_finished:
            self._on_progress(
                ReplayProgress(len(self._runs), self._created, self._bound, self._finished)
            )
        if is_newly_finished or (is_newly_bound and self._until == "bound"):
            self._close(item.metadata.name)

    def remove(self, item: _Pod) -> None:
        """Stop waiting for a deleted pod."""
        self._close(item.metadata.name)

    def _close(self, name: str) -> None:
        self._open.discard(name)
        if not self._open:
            self.complete.set()
