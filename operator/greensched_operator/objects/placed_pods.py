"""A bound pod from the operator's watch, with the times at which its containers ran."""

import msgspec

from greensched_core.objects import PodMeta, PodObject, PodStatus
from greensched_operator.objects.workloads import Condition


class DatedCondition(Condition):
    """A condition of a Pod, with its time."""

    lastTransitionTime: str | None = None


class ContainerTimes(msgspec.Struct):
    """The start time of a running or terminated container."""

    startedAt: str | None = None


class ContainerState(msgspec.Struct):
    """state of a container; at most one of both is set."""

    running: ContainerTimes | None = None
    terminated: ContainerTimes | None = None


class ContainerStatus(msgspec.Struct):
    """An entry of status.containerStatuses."""

    state: ContainerState = msgspec.field(default_factory=ContainerState)


class PlacedStatus(PodStatus):
    """status of a Pod, with its conditions and its containers' start times."""

    conditions: list[DatedCondition] | None = None
    containerStatuses: list[ContainerStatus] | None = None
    initContainerStatuses: list[ContainerStatus] | None = None


class PlacedMeta(PodMeta):
    """metadata of a Pod; the deletion of a pod ends at its deletionTimestamp."""

    deletionTimestamp: str | None = None


class PlacedPod(PodObject):
    """The fields of a Pod that a placement needs."""

    metadata: PlacedMeta = msgspec.field(default_factory=PlacedMeta)
    status: PlacedStatus = msgspec.field(default_factory=PlacedStatus)
