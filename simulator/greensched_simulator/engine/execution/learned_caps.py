"""The power cap of a node by the `how_fast` head of a bundle, and what the head is shown."""

from typing import Any

import numpy as np

from greensched_policies.compiling.compiled import borrowing, fast, inlined
from greensched_policies.costs.capping import GPU
from greensched_policies.costs.cost import WorkloadColumns
from greensched_policies.encoding.observation import DecisionToMake
from greensched_policies.encoding.power_cap_observation import CappedDomain
from greensched_policies.kernel.nets import rate_candidates
from greensched_policies.kernel.plan import is_kept, slots_of
from greensched_policies.kernel.seeing_power_caps import fill_power_caps
from greensched_simulator.engine.execution.cap_signals import CapSignals
from greensched_simulator.engine.execution.needs import NodeNeeds
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.cluster import columns_of
from greensched_simulator.engine.state.observing import timing_at

_SEEN_RUNS = 2.0  # a cap makes what runs take at most about twice as long


@borrowing
def learned_cap(run: Run) -> int:
    """Return the place of the head's power cap by what it is shown; NOWHERE if it gives none."""
    memory = run.caps_memory
    rate_candidates(run.rules.cap_net, memory.features, memory.context, memory.net, memory.costs)
    for place in range(memory.costs.size):
        if not np.isfinite(memory.costs[place]):
            return NOWHERE
    return int(np.argmin(memory.costs))


@fast
def show_power_caps(
    domain: int, node: int, signals: CapSignals, needs: NodeNeeds, run: Run
) -> None:
    """Fill in what the head is shown of the power caps, seen before, of a node's domain."""
    running, needed, zone = (
        _running_on(node, needs, run),
        needs.speed[domain, node],
        run.cluster.zone[node],
    )
    left_s = running.runtime_s / needed if needed > 0.0 else np.inf
    capped = CappedDomain(
        signals.dearness[zone], needed, 1.0 * (domain == GPU), 0.0, signals.busy, signals.waiting,
        _planned_load(zone, signals, needs.longest_s[node], run),
    )  # fmt: skip
    mean_memory: Any = run.terms.mean_memory
    timing = timing_at(signals.now_s, left_s, run.terms)
    asked = DecisionToMake(running, run.terms.weights, mean_memory, timing)
    memory = run.caps_memory
    fill_power_caps(memory.seen, capped, asked, memory.features, memory.context)


@inlined
def _running_on(node: int, needs: NodeNeeds, run: Run) -> WorkloadColumns:
    """Return the summed requests of a node's jobs, for the longest of their remaining runtimes."""
    now, free_cores = columns_of(run.cluster, node), run.cluster.cpu_free[node]
    longest_s: Any = needs.longest_s[node]
    return WorkloadColumns(
        now.cpu_capacity - free_cores, now.memory_capacity - now.memory_free,
        now.gpu_capacity - now.gpu_free, longest_s,
    )  # fmt: skip


@inlined
def _planned_load(zone: int, signals: CapSignals, runtime_s: float, run: Run) -> float:
    """Return a zone's mean planned load over twice a remaining runtime; without a plan, now's."""
    plan, begin_s = run.plan, signals.now_s
    if not is_kept(plan):
        return signals.busy
    end_s, slots = begin_s + _SEEN_RUNS * runtime_s, plan.cores.shape[1]
    first, last = slots_of(begin_s, end_s, run.terms.slot_s, slots)
    cores = 0.0
    for slot in range(first, last):
        cores += plan.cores[zone, slot]
    return float(cores / ((last - first) * max(plan.capacity[zone], 1.0)))
