"""Pods that no node has yet, as a watch brings them: ours among them may be held by our gate."""

from collections.abc import Callable

import structlog

from greensched_core.errors import BadInput
from greensched_operator.objects.workloads import WorkKind, decode_work
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.runtime.metrics import ControllerMetrics

log = structlog.get_logger()


class GatedPods:
    """Hands pods on to the held work; a pod that is bound leaves the watch as if it were gone."""

    def __init__(
        self, works: HeldWorks, wake: Callable[[], None], metrics: ControllerMetrics
    ) -> None:
        self._works = works
        self._wake = wake
        self._metrics = metrics
        self._listed: set[str] = set()

    def list_began(self) -> None:
        """A full list follows."""
        self._listed = set()

    def upsert(self, item: bytes) -> None:
        """A pod is there or has changed."""
        try:
            work = decode_work(WorkKind.POD, item)
        except BadInput as fault:
            self._metrics.unreadable.inc()
            log.warning("pod skipped", reason=str(fault))
            return
        self._listed.add(work.uid)
        self._works.put(work)
        self._wake()

    def list_ended(self) -> None:
        """Whatever was not in the list is gone."""
        for uid in set(self._works.pods()) - self._listed:
            self._works.drop(uid)

    def remove(self, item: bytes) -> None:
        """A pod is gone, or bound."""
        self._works.drop(decode_work(WorkKind.POD, item).uid)
