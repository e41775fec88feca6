"""A pod as the operator's watch brings it: bound to a node, with the times at which it ran."""

import msgspec

from greensched_core.objects import PodObject, PodStatus
from greensched_operator.objects.workloads import Condition


class DatedCondition(Condition):
    """A condition of a Pod, with its time."""

    lastTransitionTime: str | None = None


class ContainerTimes(msgspec.Struct):
    """What a container's state tells of time: it runs, or has ended."""

    startedAt: str | None = None


class ContainerState(msgspec.Struct):
    """state of a container; at most one of both is there."""

    running: ContainerTimes | None = None
    terminated: ContainerTimes | None = None


class ContainerStatus(msgspec.Struct):
    """An entry of status.containerStatuses."""

    state: ContainerState = msgspec.field(default_factory=ContainerState)


class PlacedStatus(PodStatus):
    """status of a Pod, with its conditions and when its containers began."""

    conditions: list[DatedCondition] | None = None
    containerStatuses: list[ContainerStatus] | None = None
    initContainerStatuses: list[ContainerStatus] | None = None


class PlacedPod(PodObject):
    """A Pod as the watch brings it, read as far as a placement needs."""

    status: PlacedStatus = msgspec.field(default_factory=PlacedStatus)
