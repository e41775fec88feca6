"""Writes the watches' events into the snapshot; each sink is called from one task only."""

from collections.abc import Callable, Collection

from greensched_core.clock import Clock
from greensched_core.node_reading import NodeReader
from greensched_core.objects import NodeObject, PodObject, workload_of
from greensched_extender.decisions import Decisions
from greensched_extender.snapshot import Snapshot


class NodeSink:
    """Keeps the snapshot's nodes."""

    def __init__(self, snapshot: Snapshot, reader: NodeReader) -> None:
        self._snapshot = snapshot
        self._reader = reader
        self._gone: set[str] = set()  # during a list: names not seen in it so far

    def list_began(self) -> None:
        """Begin a full list."""
        self._gone = set(self._snapshot.node_names())

    def upsert(self, item: NodeObject) -> None:
        """Store a node that is new or has changed."""
        node, faults = self._reader.read(item)
        self._gone.discard(node.name)
        self._snapshot.put_node(node, faults)

    def list_ended(self) -> None:
        """Remove the nodes that the list did not hold."""
        for name in self._gone:
            self._snapshot.drop_node(name)
        self._gone = set()

    def remove(self, item: NodeObject) -> None:
        """Remove a node."""
        self._snapshot.drop_node(item.metadata.name)


class PodSink:
    """Keeps the snapshot's pods, and records in the decisions where pods were bound.

    Calls `count_binding` for each pod of `scheduler_names` that is bound after the first list, with
    whether it was scored here.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        decisions: Decisions,
        clock: Clock,
        *,
        scheduler_names: Collection[str],
        count_binding: Callable[[bool], None],
    ) -> None:
        self._snapshot = snapshot
        self._decisions = decisions
        self._clock = clock
        self._scheduler_names = scheduler_names
        self._count_binding = count_binding
        self._gone: set[str] = set()
        self._has_listed = False

    def list_began(self) -> None:
        """Begin a full list."""
        self._gone = set(self._snapshot.pod_uids())

    def upsert(self, item: PodObject) -> None:
        """Store a pod that is new or has changed; a pending or finished pod holds no resources."""
        workload = workload_of(item)
        uid = workload.uid
        if workload.is_finished:
            self._snapshot.drop_pod(uid)
        elif workload.node:
            self._gone.discard(uid)
            amounts = (workload.cpu_cores, workload.memory_bytes, workload.gpus)
            # Pods of the first list may have run for long; later ones have not.
            if self._snapshot.put_pod(uid, workload.node, amounts, is_recent=self._has_listed):
                was_scored = self._decisions.bound(uid, workload.node, self._clock.now())
                if self._has_listed and workload.scheduler in self._scheduler_names:
                    self._count_binding(was_scored)

    def list_ended(self) -> None:
        """Remove the pods that the list did not hold."""
        for uid in self._gone:
            self._snapshot.drop_pod(uid)
        self._gone = set()
        self._has_listed = True

    def remove(self, item: PodObject) -> None:
        """Remove a pod that is gone, or no longer bound and running."""
        self._snapshot.drop_pod(item.metadata.uid)
