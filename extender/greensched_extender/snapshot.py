"""The picture of the cluster: one writer keeps it, readers take frozen views of it.

A row belongs to a node's name from its first mention (as a node, or by a pod bound to it) until
the node is gone and its last pod too; so pods may come before their node and go after it.
Everything here happens in the event loop's one thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from greensched_core.clock import Clock
from greensched_core.objects import Amounts
from greensched_core.signals.readings import Reading
from greensched_core.state import Node
from greensched_extender.node_rows import NodeRows
from greensched_extender.rows import NO_ROW
from greensched_extender.view import View

# Sources of `greensched_core.power.meters` that measure at the plug or the whole platform.
WHOLE_MACHINE_METERS = frozenset({"greensched", "kepler-psys", "kepler-0.9-platform"})


@dataclass(frozen=True, slots=True)
class NodeReport:
    """What we believe of one node, for people."""

    node: Node | None  # None: only pods mention it
    faults: tuple[str, ...]
    requested: Amounts  # by bound and provisional pods
    pods: int
    provisional: int
    utilisation: float  # 0..1, as costs see it
    utilisation_source: str  # measured or requests
    measured_w: float | None


class Snapshot:
    """Nodes, the pods bound to them, and the pods we expect there."""

    def __init__(
        self,
        clock: Clock,
        *,
        utilisation_ratio: float,
        default_pue: float,
        provisional_ttl_s: float,
    ) -> None:
        self._clock = clock
        self._ttl_s = provisional_ttl_s
        self._rows = NodeRows(utilisation_ratio=utilisation_ratio, default_pue=default_pue)
        self._nodes: dict[str, tuple[Node, tuple[str, ...]]] = {}
        self._pods: dict[str, tuple[int, Amounts]] = {}  # uid → where it is bound
        # uid → rows, amounts, time to drop it (monotonic seconds); oldest first
        self._provisional: dict[str, tuple[tuple[int, ...], Amounts, float]] = {}
        self._shared: dict[Amounts, Amounts] = {}  # most pods ask for the same: one tuple for all
        self._measured_w: dict[str, float] = {}
        self.expired = 0  # provisional pods that the watch never confirmed

    @property
    def node_count(self) -> int:
        """Nodes there are."""
        return len(self._nodes)

    @property
    def pod_count(self) -> int:
        """Bound pods that hold resources."""
        return len(self._pods)

    @property
    def provisional_count(self) -> int:
        """Pods counted where we expect them."""
        return len(self._provisional)

    @property
    def unreadable_count(self) -> int:
        """Nodes whose capacity could not be read."""
        return len(self._rows.unreadable)

    @property
    def faulty_count(self) -> int:
        """Nodes with something that could not be read."""
        return sum(1 for _, faults in self._nodes.values() if faults)

    @property
    def measured_count(self) -> int:
        """Nodes whose watts are measured."""
        return len(self._measured_w)

    def put_node(self, node: Node, faults: tuple[str, ...] = ()) -> None:
        """Take in a node that is new or has changed; `faults` say what could not be read."""
        entry = (node, faults)
        if self._nodes.get(node.name) == entry:
            return  # a heartbeat: nothing that we read
        self._nodes[node.name] = entry
        self._rows.describe(node, is_readable=node.cpu_cores > 0 and node.memory_bytes > 0)

    def drop_node(self, name: str) -> None:
        """Forget a node; its pods stay counted on its row until they go too."""
        if self._nodes.pop(name, None) is not None:
            self._rows.forget(name)

    def node_names(self) -> list[str]:
        """Return the names of all nodes."""
        return list(self._nodes)

    def put_pod(self, uid: str, node_name: str, amounts: Amounts) -> bool:
        """Count a bound pod on its node; return whether it is newly there."""
        self._settle(uid)
        row = self._rows.row(node_name)
        before = self._pods.get(uid)
        if before == (row, amounts):
            return False
        amounts = self._shared.setdefault(amounts, amounts)
        self._pods[uid] = (row, amounts)
        self._rows.add(row, amounts, 1)
        if before is not None:  # only now: the row of a node that is gone ends with its last pod
            self._rows.add(before[0], before[1], -1)
        return before is None

    def drop_pod(self, uid: str) -> None:
        """Stop counting a pod: it is deleted or finished."""
        self._settle(uid)
        before = self._pods.pop(uid, None)
        if before is not None:
            self._rows.add(before[0], before[1], -1)

    def pod_uids(self) -> list[str]:
        """Return the uids of all counted pods."""
        return list(self._pods)

    def expect(self, uid: str, row: int, amounts: Amounts) -> None:
        """Count a pod on the row it will probably be bound to, until the watch or time tells.

        The protocol never says which node the scheduler chose. Without this, all pods of a burst
        would see the same empty node.
        """
        self.expect_any(uid, () if row == NO_ROW else (row,), amounts)

    def expect_any(self, uid: str, rows: Sequence[int], amounts: Amounts) -> None:
        """Count a pod on each of the rows that it may be bound to, so that none is overfilled."""
        if not rows or not uid or uid in self._pods:
            return
        self._settle(uid)
        self._provisional[uid] = (tuple(rows), amounts, self._clock.monotonic() + self._ttl_s)
        for row in rows:
            self._rows.add(row, amounts, 1, provisional=1)

    def withdraw(self, uid: str) -> None:
        """Stop expecting a pod, so that it does not stand in its own way when asked again."""
        self._settle(uid)

    def expire(self) -> None:
        """Stop expecting pods whose time is over."""
        now = self._clock.monotonic()
        while self._provisional:
            uid, (_, _, until) = next(iter(self._provisional.items()))
            if until > now:
                return
            self.expired += 1
            self._settle(uid)

    def measure(self, utilisation: Mapping[str, Reading], watts: Mapping[str, Reading]) -> None:
        """Take in what is measured: CPU utilisation (0..1) and watts; all others are unmeasured.

        Where only watts are measured, utilisation is read off the power curve, if the meter saw
        the whole machine (a CPU package's watts lie below the curve) and there are no GPUs in it.
        """
        self._measured_w = {name: reading.value for name, reading in watts.items()}
        shares = {name: reading.value for name, reading in utilisation.items()}
        for name, reading in watts.items():
            node, _ = self._nodes.get(name, (None, ()))
            is_whole = reading.source in WHOLE_MACHINE_METERS
            if node is not None and node.gpu is None and is_whole and name not in shares:
                shares[name] = node.curve.utilisation_for(reading.value)
        self._rows.measure(shares)

    def view(self) -> View:
        """Return the newest frozen view; the same one while nothing changes."""
        self.expire()
        return self._rows.view()

    def report(self, name: str) -> NodeReport | None:
        """Return what we believe of a node; None when nobody ever mentioned it."""
        row = self._rows.find(name)
        if row == NO_ROW:
            return None
        node, faults = self._nodes.get(name, (None, ()))
        rows = self._rows
        cpu, memory, gpus = (float(value) for value in rows.requested[:, row])
        return NodeReport(
            node=node,
            faults=faults,
            requested=(cpu, memory, gpus),
            pods=int(rows.pods[row] - rows.provisional[row]),
            provisional=int(rows.provisional[row]),
            utilisation=rows.utilisation(row),
            utilisation_source="requests" if np.isnan(rows.measured[row]) else "measured",
            measured_w=self._measured_w.get(name),
        )

    def _settle(self, uid: str) -> None:
        expected = self._provisional.pop(uid, None)
        if expected is not None:
            rows, amounts, _ = expected
            for row in rows:
                self._rows.add(row, amounts, -1, provisional=-1)
