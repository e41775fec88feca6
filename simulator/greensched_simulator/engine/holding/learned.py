"""The costs of starts and slots by a GreenPolicy's `when` rule, or by the head of its bundle.

The head is shown what the operator shows it (`planning/when_choice.py`), and computed as there.
"""

from typing import Any

import numpy as np

from greensched_policies.compiling.compiled import fast
from greensched_policies.costs.cost import Floats, WorkloadColumns
from greensched_policies.encoding.observation import DecisionToMake
from greensched_policies.encoding.slots import SlotColumns
from greensched_policies.encoding.weights import Weights
from greensched_policies.kernel.grid_means import coming_day_of
from greensched_policies.kernel.nets import empty_net_scratch, rate_candidates
from greensched_policies.kernel.seeing_starts import encode_starts
from greensched_policies.kernel.starts import as_slots
from greensched_policies.library import functions as rows
from greensched_simulator.engine.holding.hold import Hold, slot_begin_s
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.observing import timing_at


@fast
def costs_of(job: int, columns: Floats, runtime_s: Floats, run: Run, hold: Hold) -> Floats:
    """Return the cost of each start or slot of a job, [B,S], from the fields of SlotColumns.

    `runtime_s`, [Z], is what is left of it. Where an answer of the head is no number, the rule
    answers instead.
    """
    slots = as_slots(columns)
    if hold.terms.learned.net.sizes.size > 0:
        costs, is_number = _learned_costs(slots, _to_make(job, runtime_s, run, hold), run, hold)
        if is_number:
            return costs
    return run.rules.when[0](slots)


@fast
def _learned_costs(
    slots: SlotColumns, asked: DecisionToMake, run: Run, hold: Hold
) -> tuple[Floats, bool]:
    """Return the costs by the head, and whether all are numbers; infinite where no node can."""
    net, (batch, count) = hold.terms.learned.net, slots.wait_s.shape
    day = coming_day_of(run.grid, slot_begin_s(run.events.now_s[0], run))
    features, context = encode_starts(slots, asked, day)
    scratch, costs, row = (
        empty_net_scratch(net), np.full((batch, count), np.inf), np.empty(count, np.float32)
    )  # fmt: skip
    for each in range(batch):
        if np.isinf(slots.runtime_s[each, 0]):
            continue
        rate_candidates(net, features[each], context[each], scratch, row)
        for place in range(count):
            costs[each, place] = row[place]
            if not np.isfinite(row[place]):
                return costs, False
    return costs, True


@fast
def _to_make(job: int, runtime_s: Floats, run: Run, hold: Hold) -> DecisionToMake:
    """Return what the decision on a job rests on besides its starts."""
    asked, learned, now_s = hold.asked, hold.terms.learned, run.events.now_s[0]
    left_s: Any = _on_reference_s(job, runtime_s, run, hold)
    end_s = learned.deadline_s[job]
    if np.isinf(end_s):  # as if it had to end as soon as is expected
        end_s = asked[rows.LATEST_S, job] + left_s
    work = WorkloadColumns(
        asked[rows.CPU_CORES, job], asked[rows.MEMORY_BYTES, job], asked[rows.GPUS, job], left_s
    )
    weights = Weights(
        asked[rows.BY_PRICE, job], asked[rows.BY_CARBON, job], asked[rows.BY_TIME, job]
    )
    timing = timing_at(now_s, end_s - now_s, run.terms)
    mean_memory: Any = run.terms.mean_memory
    return DecisionToMake(work, weights, mean_memory, timing)


@fast
def _on_reference_s(job: int, runtime_s: Floats, run: Run, hold: Hold) -> float:
    """Return what is left of a job on the reference core, from what is left in the zones."""
    whole_s = run.jobs.estimate_s[job]
    for zone in range(runtime_s.size):
        if not np.isinf(runtime_s[zone]):
            return float(whole_s * (runtime_s[zone] / hold.whole_s[job, zone]))
    return float(whole_s)
