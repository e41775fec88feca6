"""A view of the cluster, which requests read."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

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
    NodeColumns,
)
from greensched_policies.library.node_names import NO_ROW, EntryTable, Rows
from greensched_policies.library.node_table import (
    CPU_BEFORE,
    GPU_FREE,
    IS_EMPTY,
    MEMORY_FREE,
    NodeTable,
)
from greensched_policies.library.seeing_nodes import NodesToSee

_NOWHERE: Floats = np.empty(0)  # no GPU is measured


@dataclass(frozen=True, slots=True, eq=False)
class NodeNames:
    """The rows of nodes by name; a row keeps its node for as long as this value lives."""

    row_of: dict[str, int]  # only nodes of known capacity
    by_row: list[str]  # new rows are appended, no row is ever renamed
    by_row_bytes: int  # memory of that list and its names
    entries: EntryTable  # each node's entry in a prioritize reply; finds names in a request
    unreadable: frozenset[str]  # nodes whose capacity could not be read

    def rows(self, names: list[str]) -> Rows:
        """Return the row of each name, NO_ROW where there is none."""
        try:
            return np.fromiter(map(self.row_of.__getitem__, names), np.int64, len(names))
        except KeyError:
            found = (self.row_of.get(name, NO_ROW) for name in names)
            return np.fromiter(found, np.int64, len(names))


@dataclass(frozen=True, slots=True, eq=False)
class NodeFacts:
    """Properties that change only when a node is edited."""

    fixed: Floats  # [rows, 8]
    zone_of: npt.NDArray[np.int32]  # [rows] index into `zones`
    budget_w: Floats  # [rows] watts; infinite where there is no budget
    zones: tuple[str, ...]  # the first is "", for nodes without a zone
    curve_watts: Floats  # flat [classes * 11]


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The cluster as it is now: read what moves before the next `await`.

    Names and facts of a view never change. What moves is not copied for each request.
    """

    names: NodeNames
    facts: NodeFacts
    moving: Floats  # [rows, 4]
    gpu_share: Floats | None = None  # [rows] measured, NaN where it is not; None: nowhere
    nodes: NodesToSee = field(init=False)  # all of that, as compiled code reads it

    def __post_init__(self) -> None:
        share = _NOWHERE if self.gpu_share is None else self.gpu_share
        table = NodeTable(self.facts.fixed, self.moving, self.facts.zone_of, share)
        object.__setattr__(self, "nodes", NodesToSee(table, self.facts.curve_watts))

    def candidates(self, rows: Rows) -> NodeColumns:
        """Return the columns of `rows` as a batch of one decision, [1,N] each."""
        fixed = self.facts.fixed.take(rows, axis=0).T[:, None, :]
        moving = self.moving.take(rows, axis=0).T[:, None, :]
        return NodeColumns(
            cpu_capacity=fixed[CPU_CAPACITY],
            cpu_before=moving[CPU_BEFORE],
            memory_capacity=fixed[MEMORY_CAPACITY],
            memory_free=moving[MEMORY_FREE],
            gpu_capacity=fixed[GPU_CAPACITY],
            gpu_free=moving[GPU_FREE],
            gpu_idle_w=fixed[GPU_IDLE_W],
            gpu_peak_w=fixed[GPU_PEAK_W],
            curve_class=fixed[CURVE_CLASS],
            speed=fixed[CORE_SPEED],
            pue=fixed[PUE],
            is_empty=moving[IS_EMPTY],
        )
