"""The state of the cluster: one writer updates it, readers take views of it.

A node's name has a row from its first mention, as a node or by a pod bound to it, until the node
and its last pod are gone. So pods may come before their node and stay after it.
All of this runs in the event loop's thread.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from greensched_core.clock import Clock
from greensched_core.metering.meters.catalogue import WHOLE_MACHINE
from greensched_core.objects import RequestedAmounts
from greensched_core.signals.readings import RATIO, Reading
from greensched_core.state import Node
from greensched_extender.node_rows import NodeRows
from greensched_extender.view import View
from greensched_policies.library.node_names import NO_ROW

# A measured value is a mean over this long (`window_s` of `greensched_core.metering.measured`).
METER_WINDOW_S = 120.0
_MOST_RECENT = 5_000  # pods, 40 a second over that window; older ones count as measured
_MOST_SHARED = 4_096  # different requests; a cluster has dozens
_LONGEST_UID = 253  # characters; the API server's are 36


@dataclass(frozen=True, slots=True)
class NodeReport:
    """Assumed state of one node, for people."""

    node: Node | None  # None: only pods mention it
    faults: tuple[str, ...]
    requested: RequestedAmounts  # by bound and provisional pods
    pods: int
    provisional: int
    utilisation: float  # 0..1, as used for costs
    utilisation_source: str  # measured or requests
    measured_w: float | None
    meter: str  # source of measured_w; "" if not measured
    gpu_w: Reading | None  # measured watts of its GPUs
    gpu_share: float | None  # of a busy GPU's range, measured; None: assumed


class Snapshot:
    """Nodes, the pods bound to them, and the pods expected there."""

    def __init__(
        self,
        clock: Clock,
        *,
        utilisation_ratio: float,
        gpu_ratio: float,
        default_pue: float,
        provisional_ttl_s: float,
    ) -> None:
        self._clock = clock
        self._ttl_s = provisional_ttl_s
        self._rows = NodeRows(
            utilisation_ratio=utilisation_ratio, gpu_ratio=gpu_ratio, default_pue=default_pue
        )
        self._nodes: dict[str, tuple[Node, tuple[str, ...]]] = {}
        self._pods: dict[str, tuple[int, RequestedAmounts]] = {}  # uid → where it is bound
        # uid → row, amounts, time to drop it (monotonic seconds); oldest first
        self._provisional: dict[str, tuple[int, RequestedAmounts, float]] = {}
        self._recent: deque[tuple[float, str]] = deque(maxlen=_MOST_RECENT)  # bound when, uid
        self._shared: dict[
            RequestedAmounts, RequestedAmounts
        ] = {}  # most requests are equal: they share one tuple
        self._measured: Mapping[str, Reading] = {}  # watts
        self._gpu_watts: Mapping[str, Reading] = {}
        self.expired = 0  # provisional pods that the watch never confirmed

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self._nodes)

    @property
    def pod_count(self) -> int:
        """Number of bound pods that hold resources."""
        return len(self._pods)

    @property
    def provisional_count(self) -> int:
        """Number of pods counted on their expected node."""
        return len(self._provisional)

    @property
    def unreadable_count(self) -> int:
        """Number of nodes whose capacity could not be read."""
        return len(self._rows.unreadable)

    @property
    def faulty_count(self) -> int:
        """Number of nodes with something that could not be read."""
        return sum(1 for _, faults in self._nodes.values() if faults)

    @property
    def measured_count(self) -> int:
        """Number of nodes whose watts are measured."""
        return len(self._measured)

    def put_node(self, node: Node, faults: tuple[str, ...] = ()) -> None:
        """Store a node that is new or has changed; `faults` name what could not be read."""
        entry = (node, faults)
        if self._nodes.get(node.name) == entry:
            return  # a heartbeat: nothing that we read has changed
        self._nodes[node.name] = entry
        self._rows.describe(node, is_readable=node.cpu_cores > 0 and node.memory_bytes > 0)

    def drop_node(self, name: str) -> None:
        """Remove a node; its pods stay counted on its row until they are gone."""
        if self._nodes.pop(name, None) is not None:
            self._rows.forget(name)

    def node_names(self) -> list[str]:
        """Return the names of all nodes."""
        return list(self._nodes)

    def put_pod(
        self, uid: str, node_name: str, amounts: RequestedAmounts, *, is_recent: bool = True
    ) -> bool:
        """Count a bound pod on its node; return whether the pod is new.

        A recent pod was bound just now, so measurements do not include it yet.
        """
        self._stop_expecting(uid)
        row = self._rows.row(node_name)
        before = self._pods.get(uid)
        if before == (row, amounts):
            return False
        self._pods[uid] = (row, self._share(amounts))
        if is_recent and before is None:
            self._forget_old()
            self._recent.append((self._clock.monotonic(), uid))
        self._rows.add(row, amounts, 1)
        if before is not None:  # last: the row of a removed node ends with its last pod
            self._rows.add(before[0], before[1], -1)
        return before is None

    def drop_pod(self, uid: str) -> None:
        """Stop counting a pod: it is deleted or finished."""
        self._stop_expecting(uid)
        before = self._pods.pop(uid, None)
        if before is not None:
            self._rows.add(before[0], before[1], -1)

    def pod_uids(self) -> list[str]:
        """Return the uids of all counted pods."""
        return list(self._pods)

    def node_of(self, uid: str) -> str:
        """Return the node that a counted pod is bound to; "" for a pod that is not counted."""
        row, _ = self._pods.get(uid, (NO_ROW, None))
        return "" if row == NO_ROW else self._rows.view().names.by_row[row]

    def expect(self, uid: str, row: int, amounts: RequestedAmounts) -> None:
        """Count a pod on the row it will probably be bound to, until it is seen there or expires.

        The protocol never says which node the scheduler chose. Without this, all pods of a burst
        would see the same empty node.
        """
        if row == NO_ROW or uid in self._pods or not 0 < len(uid) <= _LONGEST_UID:
            return
        self._stop_expecting(uid)
        self._provisional[uid] = (row, amounts, self._clock.monotonic() + self._ttl_s)
        self._rows.add(row, amounts, 1, provisional=1)

    def withdraw(self, uid: str) -> None:
        """Stop expecting a pod, so that it does not count against itself in its next request."""
        self._stop_expecting(uid)

    def expire(self) -> None:
        """Stop expecting pods whose time has expired."""
        now = self._clock.monotonic()
        while self._provisional:
            uid, (_, _, until) = next(iter(self._provisional.items()))
            if until > now:
                return
            self.expired += 1
            self._stop_expecting(uid)

    def measure(
        self,
        utilisation: Mapping[str, Reading],
        watts: Mapping[str, Reading],
        gpu_watts: Mapping[str, Reading],
    ) -> None:
        """Store measured CPU utilisation (0..1) and watts; all other nodes become unmeasured.

        `utilisation` may include what `utilisation_by_watts` returned. `gpu_watts` are those of a
        node's GPUs alone.
        """
        self._measured, self._gpu_watts = watts, gpu_watts
        self._rows.measure(utilisation, gpu_watts, self._unseen())

    def utilisation_by_watts(self, watts: Iterable[tuple[str, Reading]]) -> dict[str, Reading]:
        """Return the utilisation (0..1) by the power curve, where the watts determine it.

        They do if the meter measures the whole machine (a CPU package's watts lie below the curve)
        and the machine has no GPUs.
        """
        found = {}
        for name, reading in watts:
            node, _ = self._nodes.get(name, (None, ()))
            if node is not None and node.gpu is None and reading.source in WHOLE_MACHINE:
                share = node.curve.utilisation_for(reading.value)
                found[name] = Reading(share, RATIO, reading.taken_at, reading.source)
        return found

    def view(self) -> View:
        """Return the newest view; the same one while no node changes."""
        self.expire()
        return self._rows.view()

    def report(self, name: str) -> NodeReport | None:
        """Return the assumed state of a node; None for a name that no node or pod mentions."""
        row = self._rows.find(name)
        if row == NO_ROW:
            return None
        node, faults = self._nodes.get(name, (None, ()))
        rows, measured = self._rows, self._measured.get(name)
        cpu, memory, gpus = (float(value) for value in rows.requested[:, row])
        return NodeReport(
            node=node,
            faults=faults,
            requested=(cpu, memory, gpus),
            pods=int(rows.pods[row] - rows.provisional[row]),
            provisional=int(rows.provisional[row]),
            utilisation=rows.utilisation(row),
            utilisation_source="requests" if np.isnan(rows.measured[row]) else "measured",
            measured_w=None if measured is None else measured.value,
            meter="" if measured is None else measured.source,
            gpu_w=self._gpu_watts.get(name),
            gpu_share=rows.gpu_share_of(row),
        )

    def _stop_expecting(self, uid: str) -> None:
        expected = self._provisional.pop(uid, None)
        if expected is not None:
            row, amounts, _ = expected
            self._rows.add(row, amounts, -1, provisional=-1)

    def _share(self, amounts: RequestedAmounts) -> RequestedAmounts:
        if len(self._shared) >= _MOST_SHARED:
            self._shared.clear()
        return self._shared.setdefault(amounts, amounts)

    def _forget_old(self) -> None:
        """Drop pods from the recent ones that have run for a meter's whole window."""
        since = self._clock.monotonic() - METER_WINDOW_S
        while self._recent and self._recent[0][0] <= since:
            self._recent.popleft()

    def _unseen(self) -> Iterator[tuple[int, RequestedAmounts]]:
        """Yield rows, and what is requested there that a mean over the meters' window lacks.

        The mean includes t / window of a pod bound t seconds ago, and nothing of an expected pod.
        """
        self._forget_old()
        now = self._clock.monotonic()
        for bound_at, uid in self._recent:
            row, amounts = self._pods.get(uid, (NO_ROW, (0.0, 0.0, 0.0)))
            if row != NO_ROW:
                share = 1.0 - (now - bound_at) / METER_WINDOW_S
                yield row, (amounts[0] * share, amounts[1] * share, amounts[2] * share)
        for row, amounts, _ in self._provisional.values():
            yield row, amounts
