"""Stores nodes as a structure of arrays: each node has a stable row, updated on its own."""

from collections.abc import Iterable, Mapping
from sys import getsizeof
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from greensched_core.objects import RequestedAmounts
from greensched_core.power.curves import PowerCurve
from greensched_core.signals.readings import Reading
from greensched_core.state import Node
from greensched_extender.gpu_shares import measured_shares
from greensched_extender.protocol import score_head
from greensched_extender.view import NodeFacts, NodeNames, View
from greensched_policies.costs.cost import (
    CORE_SPEED,
    CPU_CAPACITY,
    CURVE_CLASS,
    GPU_CAPACITY,
    GPU_IDLE_W,
    GPU_PEAK_W,
    MEMORY_CAPACITY,
    PUE,
    Floats,
    curve_table,
)
from greensched_policies.library.node_names import NO_ROW, TAIL, ByteArray, EntryTable
from greensched_policies.library.node_table import (
    CPU_BEFORE,
    FIXED_COLUMNS,
    GPU_FREE,
    IS_EMPTY,
    MEMORY_FREE,
    MOVING_COLUMNS,
)

_FIRST_ROWS = 256
_WIDTH_STEP = 8  # bytes by which entries grow when a longer name comes


class NodeRows:
    """The snapshot's arrays; names and facts are copied for readers when they have changed."""

    def __init__(self, *, utilisation_ratio: float, gpu_ratio: float, default_pue: float) -> None:
        self._ratio = utilisation_ratio
        self._gpu_ratio = gpu_ratio
        self._pue = default_pue
        self._row_of: dict[str, int] = {}  # also nodes that only pods mention
        self._readable: dict[str, int] = {}
        self.unreadable: set[str] = set()
        self._described: set[int] = set()
        self._by_row: list[str] = []
        self._by_row_is_shared = False
        self._names_bytes = 0  # of the names in `_by_row`
        self._free: list[int] = []
        self._curves: dict[PowerCurve, int] = {}
        self._zones: dict[str, int] = {"": 0}
        self._fixed = np.zeros((_FIRST_ROWS, FIXED_COLUMNS))
        self._moving = np.zeros((_FIRST_ROWS, MOVING_COLUMNS))
        self.requested = np.zeros((3, _FIRST_ROWS))  # cpu cores, memory bytes, GPUs
        self.measured = np.full(_FIRST_ROWS, np.nan)  # utilisation 0..1
        self._requested_before = np.zeros(_FIRST_ROWS)  # cpu cores that `measured` includes
        self.gpu_share: Floats | None = None  # [rows] as views have it
        self.pods = np.zeros(_FIRST_ROWS, np.int64)  # bound and provisional
        self.provisional = np.zeros(_FIRST_ROWS, np.int64)
        self._zone_of = np.zeros(_FIRST_ROWS, np.int32)
        self._budget_w = np.full(_FIRST_ROWS, np.inf)
        self._entries: ByteArray = np.zeros((_FIRST_ROWS, 4 * _WIDTH_STEP), np.uint8)
        self._names: NodeNames | None = None
        self._facts: NodeFacts | None = None
        self._view: View | None = None

    def find(self, name: str) -> int:
        """Return the row of a name, NO_ROW when it has none."""
        return self._row_of.get(name, NO_ROW)

    def row(self, name: str) -> int:
        """Return the row of a name; assign a new row if it has none."""
        row = self._row_of.get(name)
        if row is not None:
            return row
        if self._free:
            row = self._free.pop()
            if self._by_row_is_shared:  # views and decisions still read the old name
                self._by_row, self._by_row_is_shared = self._by_row.copy(), False
            self._names_bytes -= getsizeof(self._by_row[row])
            self._by_row[row] = name
            self._names = self._view = None
        else:
            row = len(self._by_row)
            self._by_row.append(name)
            if row >= self.pods.size:
                self._grow()
        self._names_bytes += getsizeof(name)
        self._row_of[name] = row
        return row

    def describe(self, node: Node, *, is_readable: bool) -> None:
        """Store a node's properties."""
        row = self.row(node.name)
        self._described.add(row)
        self._write(row, node)
        if is_readable and node.name not in self._readable:
            self.unreadable.discard(node.name)
            self._readable[node.name] = row
            self._write_entry(row, node.name)
            self._names = None
        elif not is_readable and node.name not in self.unreadable:
            self._readable.pop(node.name, None)
            self.unreadable.add(node.name)
            self._names = None
        self._refresh(row)
        self._facts = self._view = None

    def forget(self, name: str) -> None:
        """Remove a node; its row becomes free when its last pod is gone."""
        row = self._row_of[name]
        self._described.discard(row)
        self._readable.pop(name, None)
        self.unreadable.discard(name)
        self.measured[row] = np.nan
        self._names = self._facts = self._view = None
        self._free_if_unused(row)

    def add(self, row: int, amounts: RequestedAmounts, sign: int, *, provisional: int = 0) -> None:
        """Add a pod to a row (`sign` 1), or remove it (-1)."""
        self.pods[row] += sign
        self.provisional[row] += provisional
        if self.pods[row] == 0:
            self.requested[:, row] = 0.0  # sums of floats rarely cancel exactly
        else:
            self.requested[0, row] += sign * amounts[0]
            self.requested[1, row] += sign * amounts[1]
            self.requested[2, row] += sign * amounts[2]
        self._refresh(row)
        self._free_if_unused(row)

    def measure(
        self,
        utilisation: Mapping[str, Reading],
        gpu_watts: Mapping[str, Reading],
        unseen: Iterable[tuple[int, RequestedAmounts]],
    ) -> None:
        """Store measured utilisations (0..1) and watts of GPUs; all other rows become unmeasured.

        `unseen` holds rows, and what is requested there that the measurement lacks.
        """
        self._place(utilisation, self.measured)
        np.copyto(self._requested_before, self.requested[0])
        busy_gpus = self.requested[2].copy()
        for row, (cpu_cores, _, gpus) in unseen:
            self._requested_before[row] -= cpu_cores
            busy_gpus[row] -= gpus
        self._moving[:, CPU_BEFORE] = self._utilisation()
        self.gpu_share = self._gpu_shares(gpu_watts, busy_gpus) if gpu_watts else None
        self._view = None

    def _place(self, readings: Mapping[str, Reading], column: Floats) -> None:
        """Write readings into a column; all other rows become NaN."""
        column.fill(np.nan)
        rows = np.fromiter(map(self.find, readings), np.int64, len(readings))
        values = (reading.value for reading in readings.values())
        found = np.fromiter(values, np.float64, len(readings))
        column[rows[rows != NO_ROW]] = found[rows != NO_ROW]

    def _gpu_shares(self, gpu_watts: Mapping[str, Reading], busy: Floats) -> Floats:
        watts, shares = np.empty_like(busy), np.full_like(busy, np.nan)
        self._place(gpu_watts, watts)
        rows = np.flatnonzero(self._fixed[:, GPU_CAPACITY] > 0.0)
        gpus, idle_w, peak_w = self._fixed[rows][:, [GPU_CAPACITY, GPU_IDLE_W, GPU_PEAK_W]].T
        held = np.minimum(np.maximum(busy[rows], 0.0), gpus)
        shares[rows] = measured_shares(watts[rows], gpus, held, idle_w, peak_w, self._gpu_ratio)
        shares.setflags(write=False)
        return shares

    def _utilisation(self) -> Floats:
        """Return what `utilisation` does, for all rows at once."""
        is_measured = ~np.isnan(self.measured)
        busy_cores = self.requested[0] - np.where(is_measured, self._requested_before, 0.0)
        busy_cores *= self._ratio
        capacity = self._fixed[:, CPU_CAPACITY]
        busy = np.divide(busy_cores, capacity, out=np.zeros_like(capacity), where=capacity > 0.0)
        busy += np.where(is_measured & (capacity > 0.0), self.measured, 0.0)
        clipped: Floats = np.minimum(np.maximum(busy, 0.0), 1.0)
        return clipped

    def utilisation(self, row: int) -> float:
        """Return a node's CPU utilisation, 0..1: measured, else requests times the ratio.

        Requests that came after the measurement are added to it.
        """
        capacity = self._fixed[row, CPU_CAPACITY]
        if capacity <= 0.0:
            return 0.0
        measured, requested = self.measured[row], self.requested[0, row]
        if measured == measured:  # not NaN
            requested = requested - self._requested_before[row]
        else:
            measured = 0.0
        return float(min(max(measured + requested * self._ratio / capacity, 0.0), 1.0))

    def gpu_share_of(self, row: int) -> float | None:
        """Return the measured share of a node's kind of GPU; None if it is assumed."""
        share = np.nan if self.gpu_share is None else self.gpu_share[row]
        return None if np.isnan(share) else float(share)

    def view(self) -> View:
        """Return the newest view; it shares unchanged parts with the previous one."""
        if self._view is None:
            if self._names is None:
                self._by_row_is_shared = True
                self._names = NodeNames(
                    dict(self._readable),
                    self._by_row,
                    getsizeof(self._by_row) + self._names_bytes,
                    EntryTable(self._entries.copy(), self._readable.values()),
                    frozenset(self.unreadable),
                )
            if self._facts is None:
                self._drop_unused()
                self._facts = NodeFacts(
                    _frozen(self._fixed),
                    _frozen(self._zone_of),
                    _frozen(self._budget_w),
                    tuple(self._zones),
                    curve_table([curve.watts for curve in self._curves] or [[0.0] * 11]),
                )
            self._view = View(self._names, self._facts, _read_only(self._moving), self.gpu_share)
        return self._view

    def _drop_unused(self) -> None:
        """Remove zones and curves that no node has any more, so that they do not accumulate."""
        rows = np.fromiter(self._described, np.int64, len(self._described))
        zones, place = _kept(self._zones, self._zone_of[rows])
        if len(zones) < len(self._zones):
            self._zones, self._zone_of = zones, place[self._zone_of].astype(np.int32)
        classes = self._fixed[:, CURVE_CLASS].astype(np.int64)
        curves, place = _kept(self._curves, classes[rows])
        if len(curves) < len(self._curves):
            self._curves, self._fixed[:, CURVE_CLASS] = curves, place[classes]

    def _write(self, row: int, node: Node) -> None:
        fixed, gpu = self._fixed, node.gpu
        fixed[row, CPU_CAPACITY] = node.cpu_cores
        fixed[row, MEMORY_CAPACITY] = node.memory_bytes
        fixed[row, GPU_CAPACITY] = gpu.count if gpu else 0.0
        fixed[row, GPU_IDLE_W] = gpu.idle_w if gpu else 0.0
        fixed[row, GPU_PEAK_W] = gpu.peak_w if gpu else 0.0
        fixed[row, CURVE_CLASS] = self._curves.setdefault(node.curve, len(self._curves))
        fixed[row, CORE_SPEED] = node.speed
        fixed[row, PUE] = self._pue if node.pue is None else node.pue
        self._zone_of[row] = self._zones.setdefault(node.zone, len(self._zones))
        self._budget_w[row] = np.inf if node.power_budget_w is None else node.power_budget_w

    def _write_entry(self, row: int, name: str) -> None:
        head, tail = score_head(name), TAIL
        width = self._entries.shape[1]
        if len(head) + len(tail) > width:
            needed = -(-(len(head) + len(tail)) // _WIDTH_STEP) * _WIDTH_STEP
            wider = np.full((self._entries.shape[0], needed), ord(" "), np.uint8)
            kept = width - len(tail)
            wider[:, :kept] = self._entries[:, :kept]
            wider[:, -len(tail) :] = self._entries[:, -len(tail) :]
            self._entries, width = wider, needed
        self._entries[row] = np.frombuffer(head.ljust(width - len(tail)) + tail, np.uint8)

    def _refresh(self, row: int) -> None:
        fixed, moving, requested = self._fixed, self._moving, self.requested
        moving[row, CPU_BEFORE] = self.utilisation(row)
        moving[row, MEMORY_FREE] = max(fixed[row, MEMORY_CAPACITY] - requested[1, row], 0.0)
        moving[row, GPU_FREE] = max(fixed[row, GPU_CAPACITY] - requested[2, row], 0.0)
        moving[row, IS_EMPTY] = self.pods[row] == 0

    def _free_if_unused(self, row: int) -> None:
        if self.pods[row] == 0 and row not in self._described:
            del self._row_of[self._by_row[row]]
            self._fixed[row] = 0.0
            self._budget_w[row] = np.inf
            self.measured[row] = np.nan
            self._requested_before[row] = 0.0
            if self.gpu_share is not None:  # views still read the old one
                self.gpu_share = self.gpu_share.copy()
                self.gpu_share[row] = np.nan
                self._view = None
            self._free.append(row)

    def _grow(self) -> None:
        self._fixed = _doubled(self._fixed, axis=0)
        self._moving = _doubled(self._moving, axis=0)
        self.requested = _doubled(self.requested)
        self.measured = _doubled(self.measured, np.nan)
        if self.gpu_share is not None:
            self.gpu_share = _doubled(self.gpu_share, np.nan)
        self._requested_before = _doubled(self._requested_before)
        self.pods = _doubled(self.pods)
        self.provisional = _doubled(self.provisional)
        self._zone_of = _doubled(self._zone_of)
        self._budget_w = _doubled(self._budget_w, np.inf)
        self._entries = _doubled(self._entries, axis=0)
        self._names = self._facts = self._view = None


_Key = TypeVar("_Key")


def _kept(
    number_of: dict[_Key, int], used: npt.NDArray[np.integer]
) -> tuple[dict[_Key, int], npt.NDArray[np.int64]]:
    """Return the renumbered keys in use, and old numbers to new; the first key always stays."""
    keys, numbers = list(number_of), sorted({0, *np.unique(used).tolist()})
    place = np.zeros(max(len(keys), 1), np.int64)
    place[numbers] = np.arange(len(numbers))
    return {keys[number]: new for new, number in enumerate(numbers) if keys}, place


_Scalar = TypeVar("_Scalar", bound=np.generic)


def _frozen(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    return _read_only(array.copy())


def _read_only(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    view = array.view()
    view.setflags(write=False)
    return view


def _doubled(
    array: npt.NDArray[_Scalar], fill: float = 0.0, *, axis: int = -1
) -> npt.NDArray[_Scalar]:
    """Return the array with twice as many rows; `axis` is that of the rows."""
    return np.concatenate((array, np.full_like(array, fill)), axis=axis)
