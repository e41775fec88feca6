"""Pure: which nodes a pod would push above their power budget, and a choice of equal nodes."""

from dataclasses import replace
from zlib import crc32

import numpy as np

from greensched_core.state import Workload
from greensched_extender.scoring import Appraisal, ScoringAssumptions
from greensched_extender.view import View
from greensched_policies.costs.cost import (
    CostModel,
    Floats,
    curve_starts,
    utilisation_after,
    watts_at,
)
from greensched_policies.library.node_names import Rows
from greensched_policies.library.scores import BEST_SCORE


def predicted_watts(
    view: View, rows: Rows, workload: Workload, assumptions: ScoringAssumptions
) -> Floats:
    """Return the watts that each node would draw with the pod, [N], without PUE.

    They are the power curve at the utilisation after placement, plus the idle watts of all GPUs,
    plus the busy GPUs' share of their range. A budget limits the machine, so PUE does not count.
    """
    nodes = view.candidates(rows)
    model = CostModel(
        view.facts.curve_watts, assumptions.utilisation_ratio, assumptions.gpu_ratio, False
    )
    after = utilisation_after(nodes, np.array([[workload.cpu_cores]]), model)
    watts = watts_at(model.curve_watts, curve_starts(nodes.curve_class), after)
    busy = np.minimum(nodes.gpu_capacity - nodes.gpu_free + workload.gpus, nodes.gpu_capacity)
    watts += nodes.gpu_capacity * nodes.gpu_idle_w
    watts += busy * (nodes.gpu_peak_w - nodes.gpu_idle_w) * assumptions.gpu_ratio
    one_decision: Floats = watts[0]
    return one_decision


def over_budget(
    view: View, names: list[str], workload: Workload, assumptions: ScoringAssumptions
) -> dict[str, str]:
    """Return the nodes that the pod would push above their power budget, with the reason.

    Only greensched.io/power-budget-watts makes a node refused; an unknown node always passes.
    """
    rows = view.names.rows(names)
    known = rows[rows >= 0]
    budget_w = view.facts.budget_w.take(known)
    limited = known[np.isfinite(budget_w)]
    if limited.size == 0:
        return {}
    watts = predicted_watts(view, limited, workload, assumptions)
    budget_w = view.facts.budget_w.take(limited)
    return {
        view.names.by_row[limited[place]]: (
            f"power budget: {watts[place]:.0f} W with this pod, limit {budget_w[place]:.0f} W"
        )
        for place in np.flatnonzero(watts > budget_w).tolist()
    }


def one_of_the_best(view: View, appraisal: Appraisal, uid: str) -> Appraisal:
    """Return the appraisal with a single best node, if any of the best has a power budget.

    kube-scheduler picks at random among equal scores. If a pod is counted on another node than
    the one it gets, a burst can exceed a budget. So the other best nodes score 9, one step less.
    The pod's uid selects the best node, so that a burst spreads over equal nodes.
    """
    best = np.flatnonzero(appraisal.scores == BEST_SCORE)
    if not np.isfinite(view.facts.budget_w.take(appraisal.rows[best])).any():
        return appraisal
    favourite = int(best[crc32(uid.encode()) % best.size])
    scores = np.minimum(appraisal.scores, np.int8(BEST_SCORE - 1))
    scores[favourite] = BEST_SCORE
    return replace(appraisal, scores=scores, best=favourite)
