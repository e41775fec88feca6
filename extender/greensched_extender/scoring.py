"""Pure: a view of the cluster and a pod → what each node offered would cost, and its score."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from greensched_core.state import Workload
from greensched_extender.protocol import score_head
from greensched_extender.rows import NO_ROW, Rows
from greensched_extender.view import ByteArray, View
from greensched_policies.costs.cost import CostModel, Floats
from greensched_policies.encoding.scores import spread_scores
from greensched_policies.encoding.weights import Weights
from greensched_policies.learned.guard import GuardedAnswer, WhereGuard
from greensched_policies.library.seeing_nodes import NodesSeen, PodNeeds, see_nodes


@dataclass(frozen=True, slots=True)
class ScoringAssumptions:
    """Assumptions of every decision, from the settings."""

    utilisation_ratio: float
    gpu_ratio: float
    empty_nodes_sleep: bool
    default_runtime_s: float

    def runtime_s(self, workload: Workload) -> float:
        """Return how long a workload is expected to run, seconds on the reference core."""
        return self.default_runtime_s if workload.runtime_s is None else workload.runtime_s


@dataclass(frozen=True, slots=True, eq=False)
class ZoneMeans:
    """Means over a workload's expected run, one value per zone of a view; NaN is no data."""

    carbon_g_per_kwh: Floats  # [zones]
    price_per_mwh: Floats  # [zones]


@dataclass(frozen=True, slots=True, eq=False)
class Appraisal:
    """Costs and scores of the known nodes, in the order in which they were offered."""

    rows: Rows  # [N] of the known nodes
    seen: NodesSeen
    gpu_share: Floats | None  # [N] measured, NaN where it is assumed; None: assumed for all
    answer: GuardedAnswer  # relative cost [1,N], the policy that gave it, any fault
    scores: npt.NDArray[np.int8]  # [N] 0..10
    favourite: int | None = None  # place of the node picked among the best
    preferred_cost: npt.NDArray[np.float32] | None = None  # [N] with a preference for some nodes

    @property
    def best_row(self) -> int:
        """The row of the best node; NO_ROW when all nodes score the same."""
        if self.favourite is not None:
            return int(self.rows[self.favourite])
        if self.scores.size == 0 or self.scores.min() == self.scores.max():
            return NO_ROW
        cost = self.answer.relative_cost[0] if self.preferred_cost is None else self.preferred_cost
        return int(self.rows[cost.argmin()])


def appraise(
    view: View,
    rows: Rows,
    workload: Workload,
    means: ZoneMeans,
    assumptions: ScoringAssumptions,
    guard: WhereGuard,
    weights: Weights,
) -> Appraisal:
    """Return cost and score of `workload` on each of the known nodes `rows` (none is NO_ROW).

    If no candidate's zone has data, the policy decides without that signal.
    """
    needs = PodNeeds(
        workload.cpu_cores, workload.memory_bytes, workload.gpus, assumptions.runtime_s(workload)
    )
    model = CostModel(
        view.facts.curve_watts,
        assumptions.utilisation_ratio,
        assumptions.gpu_ratio,
        assumptions.empty_nodes_sleep,
    )
    signals = means.carbon_g_per_kwh, means.price_per_mwh
    seen = see_nodes(view.table, rows, needs, signals, model, weights)
    answer = guard.answer(*seen.observation)
    scores = spread_scores(answer.relative_cost[0])
    return Appraisal(rows, seen, _gpu_share(view, rows, workload), answer, scores)


def _gpu_share(view: View, rows: Rows, workload: Workload) -> Floats | None:
    if view.gpu_share is None or not workload.gpus:
        return None
    return view.gpu_share.take(rows)


def neutral_score(scores: npt.NDArray[np.int8]) -> int:
    """Return the score of an unknown node: the median score, or 0 without any score."""
    return int(np.median(scores)) if scores.size else 0


_TENS = np.frombuffer(b"          1", np.uint8)  # by score 0..10
_ONES = np.frombuffer(b"01234567890", np.uint8)


def reply(
    rows: Rows, appraisal: Appraisal, entries: ByteArray, unknown: Sequence[str] = ()
) -> bytes:
    """Return the prioritize reply, assembled from prepared entries.

    `unknown` are the names offered whose row is NO_ROW: they get the neutral score.
    """
    if appraisal.rows.size == rows.size:
        return b"[%b]" % _entries(rows, appraisal.scores, entries)[:-1]
    neutral = b"%d}" % neutral_score(appraisal.scores)
    last = (score_head(name) + neutral for name in unknown)
    known = _entries(appraisal.rows, appraisal.scores, entries)
    return b"[%b%b]" % (known, b",".join(last))


def _entries(rows: Rows, scores: npt.NDArray[np.int8], entries: ByteArray) -> bytes:
    chosen = entries.take(rows, axis=0)
    chosen[:, -4] = _TENS.take(scores)
    chosen[:, -3] = _ONES.take(scores)
    return chosen.tobytes()
