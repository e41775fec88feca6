"""Released work that waits for a node: its plans keep their room until a pod of it has one."""

from collections.abc import Container, Iterable
from dataclasses import replace

from greensched_operator.planning.situation import Planned


class QueuedWorks:
    """The plans of queued work, by uid, in the order of their releases."""

    def __init__(self) -> None:
        self._plans: dict[str, Planned] = {}

    def __len__(self) -> int:
        return len(self._plans)

    def put(self, planned: Planned) -> None:
        """Add work that was released as planned; it keeps the room of its next run segment."""
        self._plans[planned.waiting.work.uid] = replace(planned, run_segments=())

    def drop(self, uid: str) -> None:
        """Forget work that has ended, got a node, or is gone."""
        self._plans.pop(uid, None)

    def without(self, owners: Container[str]) -> tuple[Planned, ...]:
        """Return the plans of work without pods on nodes, and forget the rest.

        `owners` are the uids of all that has pods there. A Kueue Workload's pods belong to its Job.
        """
        self._plans = {
            uid: one
            for uid, one in self._plans.items()
            if one.waiting.work.runs_as.uid not in owners
        }
        return tuple(self._plans.values())

    def replace(self, plans: Iterable[Planned]) -> None:
        """Store newer plans of work that is still queued."""
        for one in plans:
            if one.waiting.work.uid in self._plans:
                self._plans[one.waiting.work.uid] = one
