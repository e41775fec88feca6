"""The power cap of a node by the `how_fast` head of a bundle, and what the head is shown."""

from typing import Any

import numpy as np

from greensched_policies.compiling.compiled import compiled, fast
from greensched_policies.costs.capping import GPU, CapColumns
from greensched_policies.costs.cost import WorkloadColumns
from greensched_policies.encoding.observation import DecisionToMake
from greensched_policies.encoding.power_cap_observation import (
    CappedDomain,
    PowerCapObservation,
    encode_how_fast,
)
from greensched_policies.kernel.nets import empty_net_scratch, rate_candidates
from greensched_policies.library.nets import PackedNet
from greensched_simulator.engine.execution.needs import NodeNeeds
from greensched_simulator.engine.run import Run
from greensched_simulator.engine.state.choices import NOWHERE
from greensched_simulator.engine.state.cluster import columns_of
from greensched_simulator.engine.state.observing import timing_at

_encode_how_fast = compiled(encode_how_fast)


@fast
def learned_cap(shown: PowerCapObservation, net: PackedNet) -> int:
    """Return the place of the head's power cap; NOWHERE if a cost is no number."""
    features = shown.power_caps.transpose((0, 2, 1))[0]
    costs = np.empty(features.shape[1], np.float32)
    rate_candidates(net, features, shown.context[0], empty_net_scratch(net), costs)
    return int(np.argmin(costs)) if np.isfinite(costs).all() else NOWHERE


@fast
def show_power_caps(
    now_s: float,
    domain: int,
    node: int,
    seen: CapColumns,
    needs: NodeNeeds,
    dearness: float,
    run: Run,
) -> PowerCapObservation:
    """Return what the head is shown of the power caps of a node's domain.

    `dearness` is the price now, relative to the zone's coming day.
    """
    running, needed = _running_on(node, needs, run), needs.speed[domain, node]
    left_s = running.runtime_s / needed if needed > 0.0 else np.inf
    capped = CappedDomain(dearness, needed, 1.0 * (domain == GPU), 0.0)
    mean_memory: Any = run.terms.mean_memory
    timing = timing_at(now_s, left_s, run.terms)
    asked = DecisionToMake(running, run.terms.weights, mean_memory, timing)
    shown: PowerCapObservation = _encode_how_fast(seen, capped, asked)
    return shown


@fast
def _running_on(node: int, needs: NodeNeeds, run: Run) -> WorkloadColumns:
    """Return the summed requests of a node's jobs, for the longest of their remaining runtimes."""
    now, free_cores = columns_of(run.cluster, node), run.cluster.cpu_free[node]
    longest_s: Any = needs.longest_s[node]
    return WorkloadColumns(
        now.cpu_capacity - free_cores, now.memory_capacity - now.memory_free,
        now.gpu_capacity - now.gpu_free, longest_s,
    )  # fmt: skip
