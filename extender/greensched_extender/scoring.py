"""Pure: a view of the cluster and a pod → what each node offered would cost, and its score."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from greensched_core.state import Workload
from greensched_extender.protocol import score_head
from greensched_extender.view import View
from greensched_policies.costs.cost import Floats
from greensched_policies.learned.guard import GuardedAnswer, WhereGuard
from greensched_policies.library.functions import NO_BEST
from greensched_policies.library.node_names import NO_ROW, EntryTable, Rows
from greensched_policies.library.scores import spread_scores
from greensched_policies.library.seeing_nodes import (
    CostRatios,
    NodesSeen,
    PodDecision,
    PodNeeds,
)


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

    # [4, zones] carbon in g/kWh and price per MWh, and both over the coming day instead
    signals: Floats

    @property
    def carbon_g_per_kwh(self) -> Floats:
        """Carbon, [zones]."""
        carbon: Floats = self.signals[0]
        return carbon

    @property
    def price_per_mwh(self) -> Floats:
        """Price, [zones]."""
        price: Floats = self.signals[1]
        return price


@dataclass(frozen=True, slots=True, eq=False)
class Appraisal:
    """Costs and scores of the known nodes, in the order in which they were offered."""

    rows: Rows  # [N] of the known nodes
    seen: NodesSeen
    gpu_share: Floats | None  # [N] measured, NaN where it is assumed; None: assumed for all
    answer: GuardedAnswer  # relative cost [1,N], the policy that gave it, any fault
    scores: npt.NDArray[np.int8]  # [N] 0..10
    best: int  # place of the best node; NO_BEST when all score the same

    @property
    def best_row(self) -> int:
        """The row of the best node; NO_ROW when all nodes score the same."""
        return NO_ROW if self.best == NO_BEST else int(self.rows[self.best])


def appraise(
    view: View,
    rows: Rows,
    workload: Workload,
    means: ZoneMeans,
    assumptions: ScoringAssumptions,
    guard: WhereGuard,
    asked: PodDecision,
) -> Appraisal:
    """Return cost and score of `workload` on each of the known nodes `rows` (none is NO_ROW).

    If no candidate's zone has data, the policy decides without that signal.
    """
    needs = PodNeeds(
        workload.cpu_cores, workload.memory_bytes, workload.gpus, assumptions.runtime_s(workload)
    )
    ratios = CostRatios(
        assumptions.utilisation_ratio, assumptions.gpu_ratio, assumptions.empty_nodes_sleep
    )
    seen = view.nodes.see(rows, needs, means.signals, ratios, asked)
    answer = guard.answer(*seen.observation)
    shares = _gpu_share(view, rows, workload)
    return Appraisal(rows, seen, shares, answer, *spread_scores(answer.relative_cost[0]))


def _gpu_share(view: View, rows: Rows, workload: Workload) -> Floats | None:
    if view.gpu_share is None or not workload.gpus:
        return None
    return view.gpu_share.take(rows)


def neutral_score(scores: npt.NDArray[np.int8]) -> int:
    """Return the score of an unknown node: the median score, or 0 without any score."""
    return int(np.median(scores)) if scores.size else 0


def reply(appraisal: Appraisal, entries: EntryTable, unknown: Sequence[str] = ()) -> bytes:
    """Return the prioritize reply, assembled from prepared entries.

    `unknown` are the names offered whose row is NO_ROW: they get the neutral score.
    """
    known = entries.written(appraisal.rows, appraisal.scores)
    if not unknown:
        return known
    neutral = b"%d}" % neutral_score(appraisal.scores)
    last = (score_head(name) + neutral for name in unknown)
    return b"%b,%b]" % (known[:-1], b",".join(last))
