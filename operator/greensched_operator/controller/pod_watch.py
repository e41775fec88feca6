"""Takes in pods without a node from their watch; our scheduling gate may hold them."""

from collections.abc import Callable

import structlog

from greensched_core.errors import BadInput
from greensched_operator.objects.workloads import WorkKind, decode_work
from greensched_operator.planning.held_works import HeldWorks
from greensched_operator.writing.metrics import ControllerMetrics

log = structlog.get_logger()


class GatedPods:
    """Passes pods on to the held work; a bound pod leaves the watch like a deleted one."""

    def __init__(
        self, works: HeldWorks, wake: Callable[[], None], metrics: ControllerMetrics
    ) -> None:
        self._works = works
        self._wake = wake
        self._metrics = metrics
        self._listed: set[str] = set()

    def list_began(self) -> None:
        """Begin a full list."""
        self._listed = set()

    def upsert(self, item: bytes) -> None:
        """Take in an added or changed pod."""
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
        """Forget the pods that the list does not contain."""
        for uid in set(self._works.pods()) - self._listed:
            self._works.drop(uid)

    def remove(self, item: bytes) -> None:
        """Forget a deleted or bound pod."""
        self._works.drop(decode_work(WorkKind.POD, item).uid)
