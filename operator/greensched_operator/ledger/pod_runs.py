"""Runs of our pods: where each ran, and when it began and ended; energy is measured over them.

The sink passes everything on to another sink of the same watch, so that bound pods are read once.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from greensched_core.clock import Clock
from greensched_core.errors import BadInput
from greensched_core.metering.pod_runs import PodRun
from greensched_core.signals.timestamps import parse_timestamp
from greensched_core.watching import Sink
from greensched_operator.objects.placed_pods import PlacedPod
from greensched_operator.planning.cluster_state import NodeSite

_MOST_WORKLOADS = 20_000  # that are remembered; the oldest are dropped first
_SHORTEST_RUN_S = 0.5  # the times of objects are whole seconds
_TOLD_LATE_S = 5.0  # a watch may tell of a pod's end so long after its successor has begun


@dataclass(frozen=True, slots=True)
class RanPod:
    """One pod of a workload, where it ran and for how long."""

    uid: str
    namespace: str
    name: str
    site: NodeSite | None  # None if its node was not known
    begin_s: float | None  # of its first container, in seconds since the epoch; None before
    until_s: float | None = None  # None while it runs
    node: str = ""

    @property
    def run(self) -> PodRun | None:
        """Return the run once it has ended; None for a pod that was not seen to run."""
        if self.until_s is None or self.begin_s is None:
            return None
        until_s = max(self.until_s, self.begin_s)
        node = self.site.node if self.site else None
        return PodRun(self.uid, self.namespace, self.name, self.begin_s, until_s, node)


class _Run(NamedTuple):
    begin_s: float
    until_s: float
    speed: float


class PodRuns:
    """Remembers pods by their workload; a sink that passes all pods on."""

    def __init__(
        self,
        inner: Sink[PlacedPod],
        scheduler_names: frozenset[str],
        site_of: Callable[[str], NodeSite | None],
        clock: Clock,
        pod_ended: Callable[[str, float | None, float], None],
    ) -> None:
        """`clock` is the wall clock, like the times of pods.

        `pod_ended` is called with the UID, begin and end of each pod that no Job created.
        """
        self._inner = inner
        self._schedulers = scheduler_names
        self._site_of = site_of
        self._clock = clock
        self._pod_ended = pod_ended
        self._of: OrderedDict[str, dict[str, RanPod]] = OrderedDict()  # by workload, by pod
        self._unlisted: dict[str, str] = {}  # workloads of pods that a list has not contained yet

    def take(self, workload_uid: str) -> list[RanPod]:
        """Return and forget the pods of an ended workload: those of a Job, or the pod itself."""
        return list(self._of.pop(workload_uid, {}).values())

    def speed(self, workload_uid: str) -> float | None:
        """Return the mean speed of the nodes on which a workload's runtime was spent, until now.

        Of pods that ran side by side, the one counts for which the workload's end had to wait. It
        is relative to a reference node; None if no pod was seen to run on a known node.
        """
        runs_s, work_s = 0.0, 0.0
        for run in _one_after_the_other(self._seen(workload_uid)):
            run_s = max(run.until_s - run.begin_s, _SHORTEST_RUN_S)
            runs_s, work_s = runs_s + run_s, work_s + run_s * run.speed
        return work_s / runs_s if runs_s else None

    def _seen(self, workload_uid: str) -> list[_Run]:
        """Return the runs of a workload's pods on known nodes, until now."""
        runs, now_s = list[_Run](), self._clock.now()
        for pod in self._of.get(workload_uid, {}).values():
            site = pod.site or self._site_of(pod.node)
            if site is None or site.node is None:
                continue
            until_s = now_s if pod.until_s is None else pod.until_s
            begin_s = until_s if pod.begin_s is None else pod.begin_s
            runs.append(_Run(begin_s, until_s, site.node.speed))
        return runs

    def list_began(self) -> None:
        """Begin a full list."""
        self._unlisted = {
            pod: workload
            for workload, pods in self._of.items()
            for pod, ran in pods.items()
            if ran.until_s is None
        }
        self._inner.list_began()

    def upsert(self, item: PlacedPod) -> None:
        """Take a pod that exists or has changed."""
        self._inner.upsert(item)
        uid, begin_s = item.metadata.uid, _begin_s(item)
        if not uid or item.spec.schedulerName not in self._schedulers:
            return
        self._unlisted.pop(uid, None)
        pods = self._of.setdefault(_workload_of(item), {})
        node, meta = item.spec.nodeName or "", item.metadata
        known = pods.get(uid) or RanPod(uid, meta.namespace, meta.name, None, begin_s, node=node)
        site = known.site or self._site_of(node)
        begin_s = begin_s if known.begin_s is None else known.begin_s
        pods[uid] = replace(known, site=site, begin_s=begin_s)
        while len(self._of) > _MOST_WORKLOADS:
            self._of.popitem(last=False)

    def list_ended(self) -> None:
        """End the runs of all pods that were not in the list."""
        for uid, workload in self._unlisted.items():
            self._end(workload, uid)
        self._unlisted = {}
        self._inner.list_ended()

    def remove(self, item: PlacedPod) -> None:
        """End the run of a pod that has ended or was deleted."""
        self._inner.remove(item)
        self._end(_workload_of(item), item.metadata.uid)

    def _end(self, workload: str, uid: str) -> None:
        ran = self._of.get(workload, {}).get(uid)
        if ran is None or ran.until_s is not None:
            return
        until_s = self._clock.now()
        site = ran.site or self._site_of(ran.node)  # nodes may have been listed after pods
        self._of[workload][uid] = replace(ran, until_s=until_s, site=site)
        if workload == uid:
            self._pod_ended(uid, ran.begin_s, until_s)


def _one_after_the_other(runs: Sequence[_Run]) -> Iterator[_Run]:
    """Yield the run that ended last, then the last that had ended when it began, and so on."""
    begin_s = math.inf
    while earlier := [
        run for run in runs if run.begin_s < begin_s and run.until_s <= begin_s + _TOLD_LATE_S
    ]:
        last = max(earlier, key=lambda run: run.until_s)
        begin_s = last.begin_s
        yield last


def _workload_of(pod: PlacedPod) -> str:
    """Return the UID of the Job that created a pod, else the pod's own."""
    owners = pod.metadata.ownerReferences or ()
    jobs = (each.uid for each in owners if each.controller and each.kind == "Job" and each.uid)
    return next(jobs, pod.metadata.uid)


def _begin_s(pod: PlacedPod) -> float | None:
    """Return when a pod's first container began; None before that."""
    statuses = [*(pod.status.initContainerStatuses or ()), *(pod.status.containerStatuses or ())]
    states = [state for each in statuses for state in (each.state.running, each.state.terminated)]
    return min(_times(each.startedAt for each in states if each is not None), default=None)


def _times(texts: Iterable[str | None]) -> Iterable[float]:
    for text in texts:
        try:
            if text:
                yield parse_timestamp(text)
        except BadInput:
            continue
