"""Jobs and pods as the API server writes them → Work: the values that holding and planning use."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from greensched_core import labels
from greensched_core.errors import BadInput
from greensched_core.objects import OwnerReference, PodMeta, PodObject, PodSpec, workload_of
from greensched_core.signals.timestamps import parse_timestamp
from greensched_operator.objects.own_annotations import ours
from greensched_operator.objects.own_marks import OwnMarks, read_marks, readable_s
from greensched_operator.objects.queue_gate import KUEUE_QUEUE, queue_gates

# Label by which other schedulers mark pods and Jobs that only make sense together.
_GANG_LABEL = "scheduling.x-k8s.io/pod-group"
# Annotation of a CronJob's run (kubernetes.io/docs/reference/labels-annotations-taints).
_SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_JOB_CONTROLLER = "kubernetes.io/job-controller"  # spec.managedBy of Jobs that Kubernetes runs
_GRACE_S = 30.0  # Kubernetes' default of terminationGracePeriodSeconds
# These owners rely on their pods running: a hold would only stall a rollout or a daemon, and none
# of their pods ends by itself.
SERVING_OWNERS = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"})


class WorkKind(StrEnum):
    """What we hold: Jobs by `suspend`, pods by a gate, Kueue's Workloads by an AdmissionCheck.

    A Job in a Kueue queue is held by our gate in its annotation, since Kueue controls `suspend`.
    """

    JOB = "Job"
    POD = "Pod"
    WORKLOAD = "Workload"


class Meta(msgspec.Struct):
    """metadata of a Job, pod or pod template."""

    name: str = ""
    generateName: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""
    creationTimestamp: str | None = None
    deletionTimestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[OwnerReference] | None = None


class SchedulingGate(msgspec.Struct):
    """An entry of spec.schedulingGates."""

    name: str = ""


class GatedPodSpec(PodSpec):
    """spec of a Pod, with the fields that holding reads."""

    schedulingGates: list[SchedulingGate] | None = None
    nodeSelector: dict[str, str] | None = None


class Condition(msgspec.Struct):
    """An entry of status.conditions."""

    type: str = ""
    status: str = ""


class HeldPodStatus(msgspec.Struct):
    """status of a Pod."""

    phase: str = ""
    startTime: str | None = None
    conditions: list[Condition] | None = None


class GatedPod(msgspec.Struct):
    """A Pod as the API server writes it."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: GatedPodSpec = msgspec.field(default_factory=GatedPodSpec)
    status: HeldPodStatus = msgspec.field(default_factory=HeldPodStatus)


class JobPodSpec(GatedPodSpec):
    """spec of a Job's pods, with the fields that a pause reads."""

    terminationGracePeriodSeconds: float | None = None


class Template(msgspec.Struct):
    """spec.template of a Job."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: JobPodSpec = msgspec.field(default_factory=JobPodSpec)


class JobSpec(msgspec.Struct):
    """spec of a Job."""

    suspend: bool | None = None
    parallelism: int | None = None
    completions: int | None = None
    managedBy: str | None = None
    template: Template = msgspec.field(default_factory=Template)


class JobStatus(msgspec.Struct):
    """status of a Job."""

    startTime: str | None = None
    completionTime: str | None = None
    ready: int | None = None
    succeeded: int | None = None
    terminating: int | None = None
    conditions: list[Condition] | None = None


class JobObject(msgspec.Struct):
    """A Job as the API server writes it."""

    metadata: Meta = msgspec.field(default_factory=Meta)
    spec: JobSpec = msgspec.field(default_factory=JobSpec)
    status: JobStatus = msgspec.field(default_factory=JobStatus)


@dataclass(frozen=True, slots=True)
class Owner:
    """The controller that created a workload."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Work:
    """One Job, pod or Workload: its identity, requests, annotations and state."""

    kind: WorkKind
    namespace: str
    name: str  # the generateName prefix where it has no name yet
    uid: str
    created_s: float | None  # seconds since the epoch; None before the API server has stored it
    annotations: Mapping[str, str]  # ours only; a Job's own override those of its template
    scheduler: str
    cpu_cores: float  # of all pods that run at the same time
    memory_bytes: float
    gpus: float
    node_selector: Mapping[str, str]
    gang: str  # the same for all that is released together; "" for none
    owner: Owner | None
    is_stopped: bool  # suspended, or has our gate
    is_finished: bool
    is_leaving: bool  # its deletion has begun
    pods: int = 1  # that run at the same time
    started_s: float | None = None  # of the current run
    ended_s: float | None = None
    version: str = ""  # the object's resourceVersion
    is_running: bool = False  # a Job whose pods run, all that should
    is_ours: bool = False  # a Job that only its users and we may suspend
    grace_s: float = 30.0  # the longest time that its pods may take to end
    is_ending: bool = False  # a stopped Job whose pods are terminating but still run
    queue_gates: str | None = None  # of a Job in a Kueue queue: see queue_gate.py
    scheduled_s: float | None = None  # when a CronJob's run was due, by the controller manager
    has_plan_condition: bool = False  # its condition says that a start is planned
    job: "Work | None" = None  # the Job of a Kueue Workload
    marks: OwnMarks = field(init=False, repr=False, compare=False)  # read from the annotations

    def __post_init__(self) -> None:
        object.__setattr__(self, "marks", read_marks(self.annotations))

    @property
    def runs_as(self) -> "Work":
        """Return the object that runs and ends: the Job of a Workload, else itself."""
        return self.job or self

    @property
    def key(self) -> str:
        """Return its unique key, which a later object of the same name does not share."""
        return self.uid

    @property
    def wanted(self) -> tuple[object, ...]:
        """Return the values, written by others, on which the decision to hold depends."""
        asked = {k: v for k, v in self.annotations.items() if k not in labels.WRITTEN}
        until = self.annotations.get(labels.LATEST_START) is None
        return asked, until, self.is_stopped, self.cpu_cores, self.gang, self.node_selector

    @property
    def is_marked(self) -> bool:
        """Return whether it has our mark of held work, the annotation latest-start."""
        return labels.LATEST_START in self.annotations

    @property
    def is_barred(self) -> bool:
        """Return whether it is stopped by something that we may remove."""
        return self.is_stopped and self.queue_gates != ""

    @property
    def is_left(self) -> bool:
        """Return whether our mark was removed from it, but it was not started.

        Only we remove our gate, so gated work was held by us. A suspended Job counts if its
        annotations say that it was held and never released.
        """
        was_held = labels.HELD_AT in self.annotations and not self.was_released
        is_gated = self.kind == WorkKind.POD or bool(self.queue_gates)
        return self.is_barred and not self.is_marked and (is_gated or was_held)

    @property
    def was_released(self) -> bool:
        """Return whether GreenSched has started it before."""
        return labels.RELEASED_AT in self.annotations

    @property
    def is_held(self) -> bool:
        """Return whether we hold it: we have stopped it."""
        return self.is_barred and (self.is_marked or self.is_left)

    @property
    def is_paused(self) -> bool:
        """Return whether we suspended it while it ran, to resume it later."""
        return self.is_held and labels.PAUSED_AT in self.annotations

    @property
    def is_served(self) -> bool:
        """Return whether it belongs to a controller of services or to a Job: then never held."""
        return self.owner is not None and self.owner.kind in SERVING_OWNERS | {"Job"}


def job_work(job: JobObject) -> Work:
    """Return the Work of a Job; raises BadInput for times that cannot be read."""
    meta, template, status = job.metadata, job.spec.template, job.status
    conditions = _true_conditions(status.conditions)
    cores, memory, gpus = _asked(meta, template.spec)
    pods = _at_one_time(job.spec)
    return Work(
        kind=WorkKind.JOB,
        namespace=meta.namespace,
        name=meta.name or meta.generateName,
        uid=meta.uid,
        created_s=_time(meta.creationTimestamp),
        annotations=_inherited(template.metadata) | ours(meta.annotations),
        scheduler=template.spec.schedulerName,
        cpu_cores=cores * pods,
        memory_bytes=memory * pods,
        gpus=gpus * pods,
        node_selector=template.spec.nodeSelector or {},
        gang=_gang(meta),
        owner=_owner(meta),
        is_stopped=bool(job.spec.suspend),
        is_finished=bool(conditions & {"Complete", "Failed"}),
        is_leaving=meta.deletionTimestamp is not None,
        pods=pods,
        started_s=_time(status.startTime),
        ended_s=_time(status.completionTime),
        version=meta.resourceVersion,
        is_running=not job.spec.suspend and (status.ready or 0) >= _due(job) > 0,
        is_ours=_is_ours(job),
        is_ending=bool(job.spec.suspend and status.terminating),
        grace_s=_GRACE_S
        if (grace_s := template.spec.terminationGracePeriodSeconds) is None
        else max(grace_s, 0.0),
        queue_gates=queue_gates(meta.labels, meta.annotations),
        scheduled_s=readable_s((meta.annotations or {}).get(_SCHEDULED)),
        has_plan_condition=labels.START_PLANNED in conditions,
    )


def pod_work(pod: GatedPod) -> Work:
    """Return the Work of a pod; raises BadInput for times that cannot be read."""
    meta = pod.metadata
    cores, memory, gpus = _asked(meta, pod.spec)
    return Work(
        kind=WorkKind.POD,
        namespace=meta.namespace,
        name=meta.name or meta.generateName,
        uid=meta.uid,
        created_s=_time(meta.creationTimestamp),
        annotations=ours(meta.annotations),
        scheduler=pod.spec.schedulerName,
        cpu_cores=cores,
        memory_bytes=memory,
        gpus=gpus,
        node_selector=pod.spec.nodeSelector or {},
        gang=_gang(meta),
        owner=_owner(meta),
        is_stopped=any(gate.name == labels.GATE for gate in pod.spec.schedulingGates or ()),
        is_finished=pod.status.phase in ("Succeeded", "Failed"),
        is_leaving=meta.deletionTimestamp is not None,
        started_s=_time(pod.status.startTime),
        has_plan_condition=labels.START_PLANNED in _true_conditions(pod.status.conditions),
    )


_decode_job = msgspec.json.Decoder(JobObject).decode
_decode_pod = msgspec.json.Decoder(GatedPod).decode


def decode_work(kind: str, raw: bytes | msgspec.Raw) -> Work:
    """Return the Work of a Job or pod in JSON; raises BadInput for any other object."""
    return work_of(decode_object(kind, raw))


def work_of(workload: JobObject | GatedPod) -> Work:
    """Return the Work of a Job or pod; raises BadInput for times that cannot be read."""
    return job_work(workload) if isinstance(workload, JobObject) else pod_work(workload)


def decode_object(kind: str, raw: bytes | msgspec.Raw) -> JobObject | GatedPod:
    """Return the Job or pod in JSON; raises BadInput for any other object."""
    try:
        return _decode_job(raw) if kind == WorkKind.JOB else _decode_pod(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise BadInput(f"not a {kind}: {fault}") from fault


def convert_job(body: object) -> Work:
    """Return the Work of a Job in decoded JSON; raises BadInput for any other object."""
    try:
        return job_work(msgspec.convert(body, JobObject))
    except msgspec.ValidationError as fault:
        raise BadInput(f"not a Job: {fault}") from fault


def _true_conditions(conditions: list[Condition] | None) -> set[str]:
    return {each.type for each in conditions or () if each.status == "True"}


def _inherited(template: Meta) -> dict[str, str]:
    """Return what a template asks for; our marks on it were copied from other objects."""
    annotations = ours(template.annotations)
    return {name: value for name, value in annotations.items() if name not in labels.WRITTEN}


def _asked(meta: Meta, spec: PodSpec) -> tuple[float, float, float]:
    asked = workload_of(PodObject(PodMeta(meta.name, meta.generateName, meta.namespace), spec))
    return asked.cpu_cores, asked.memory_bytes, asked.gpus


def _at_one_time(spec: JobSpec) -> int:
    """Return how many pods of a Job run at a time; Job's API reference has the defaults."""
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    if spec.completions is not None:
        parallelism = min(parallelism, spec.completions)
    return max(parallelism, 0)


def _due(job: JobObject) -> int:
    """Return how many pods of a Job should run now."""
    pods, whole = _at_one_time(job.spec), job.spec.completions
    return pods if whole is None else min(pods, whole - (job.status.succeeded or 0))


def _is_ours(job: JobObject) -> bool:
    """Return whether no queue and no other controller is known to suspend the Job."""
    owner = _owner(job.metadata)
    return (
        KUEUE_QUEUE not in (job.metadata.labels or {})
        and job.spec.managedBy in (None, "", _JOB_CONTROLLER)
        and (owner is None or owner.kind == "CronJob")
    )


def _gang(meta: Meta) -> str:
    annotated = (meta.annotations or {}).get(labels.GANG)
    if annotated:
        return annotated
    return (meta.labels or {}).get(_GANG_LABEL, "")


def _owner(meta: Meta) -> Owner | None:
    for each in meta.ownerReferences or ():
        if each.controller:
            return Owner(each.kind, each.name, each.uid)
    return None


def _time(text: str | None) -> float | None:
    return None if text is None else parse_timestamp(text)
