"""The arrays a `where` policy sees: one row of features per candidate, one context.

`kernel/seeing_nodes.py` fills them in, node by node. Amounts are divided by the mean of the
candidates instead of being in grams or watts, so that a policy works on grids and clusters that it
was not trained on.
Changing the meaning, order or number of a feature needs a new ENCODING_VERSION.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from greensched_core.units import SECONDS_PER_HOUR
from greensched_policies.costs.cost import (
    CURVE_POINTS,
    CostModel,
    Floats,
    NodeColumns,
    PlacementCost,
    WorkloadColumns,
    ZoneColumns,
    curve_starts,
    taken,
)
from greensched_policies.encoding.timing import (
    TIMING_FEATURES,
    Timing,
    timing_columns,
)
from greensched_policies.encoding.weights import Weights

ENCODING_VERSION = 3

NODE_FEATURES = (
    "energy",  # joules added, relative to the mean candidate
    "cost",  # money added, relative; relative energy where a price is missing
    "carbon",  # grams added, relative; 1 for all where a carbon intensity is missing
    "slowdown",  # expected runtime, relative
    "cpu_before",  # utilisation 0..1
    "cpu_after",  # utilisation 0..1
    "memory_after",  # share requested with the workload, 0..1
    "gpu_free_after",  # share of the GPUs left free; 0 without GPUs
    "is_empty",  # 1 where nothing runs
    "zone_carbon",  # carbon intensity over the run, relative
    "zone_price",  # price over the run, relative to the mean of its magnitude
    "cpu_size",  # cores, relative
    "memory_size",  # bytes, relative
    "gpu_size",  # GPUs / 8
    "gpu_stranded",  # share of the GPUs that are free but blocked by a full CPU or memory
    "idle_share",  # watts at no load per watt at full load
    "speed",  # of a core, 1 on the reference core
    "power_cap",  # of its CPUs now, 0..1; 1 without a cap
    "is_measured",  # 1 where a meter gives the watts of what the workload asks for
    "carbon_of_day",  # carbon intensity over the run, relative to the zone's coming day
    "price_of_day",  # price over the run, relative to the zone's coming day
    "is_planned_zone",  # 1 in the zone in which the run was planned
)
(
    ENERGY,
    COST,
    CARBON,
    SLOWDOWN,
    CPU_BEFORE,
    CPU_AFTER,
    MEMORY_AFTER,
    GPU_FREE_AFTER,
    IS_EMPTY,
    ZONE_CARBON,
    ZONE_PRICE,
    CPU_SIZE,
    MEMORY_SIZE,
    GPU_SIZE,
    GPU_STRANDED,
    IDLE_SHARE,
    SPEED,
    POWER_CAP,
    IS_MEASURED,
    CARBON_OF_DAY,
    PRICE_OF_DAY,
    IS_PLANNED_ZONE,
) = range(22)

# Features divided by the candidates' mean, in the order of NODE_FEATURES: the first four, then
# these. They are computed in one block: at 420 candidates the calls cost more than the arithmetic.
(
    RELATIVE_ZONE_CARBON,
    RELATIVE_ZONE_PRICE,
    RELATIVE_CPU_SIZE,
    RELATIVE_MEMORY_SIZE,
) = range(4, 8)
RELATIVE_FEATURES = NODE_FEATURES[: SLOWDOWN + 1] + NODE_FEATURES[ZONE_CARBON : MEMORY_SIZE + 1]
RELATIVE_PLACES = (ENERGY, COST, CARBON, SLOWDOWN, ZONE_CARBON, ZONE_PRICE, CPU_SIZE, MEMORY_SIZE)
# The other features: the room left on a candidate.
ROOM_FEATURES = (
    CPU_BEFORE,
    CPU_AFTER,
    MEMORY_AFTER,
    GPU_FREE_AFTER,
    IS_EMPTY,
    GPU_SIZE,
    GPU_STRANDED,
    IDLE_SHARE,
)
# What no rule reads, in the order of NODE_FEATURES: only learned policies are shown it.
LEARNED_FEATURES = NODE_FEATURES[SPEED:]

WORK_FEATURES = (
    "weight_cost",  # weighs `cost`
    "weight_carbon",  # 0 where a carbon intensity is missing
    "weight_performance",
    "log_runtime",  # ln(1 + hours on the reference core)
    "log_cpu",  # ln(1 + cores)
    "gpus",  # GPUs / 8
    "memory_share",  # bytes, relative to the mean candidate
    "log_candidates",  # ln(candidates) / 10
)
CONTEXT_FEATURES = WORK_FEATURES + TIMING_FEATURES
(
    WEIGHT_COST,
    WEIGHT_CARBON,
    WEIGHT_PERFORMANCE,
    LOG_RUNTIME,
    LOG_CPU,
    GPUS,
    MEMORY_SHARE,
    LOG_CANDIDATES,
    LOG_SLACK,
    RUNTIME_ERROR,
    ON_TIME_NINES,
    DAY_SIN,
    DAY_COS,
    WEEK_SIN,
    WEEK_COS,
) = range(15)

GPUS_PER_NODE = 8.0  # the usual large node: keeps GPU counts near 0..1
LEAST_MAGNITUDE = 1e-30  # below it a mean is zero: dividing by it would overflow


class Observation(NamedTuple):
    """The input of a policy, float32.

    `nodes` is feature-major in memory, as the graphs' input is: `nodes[:, :, COST]` is
    contiguous and onnxruntime needs no copy.
    """

    nodes: npt.NDArray[np.float32]  # [B,N,22]
    context: npt.NDArray[np.float32]  # [B,15]


class DecisionToMake(NamedTuple):
    """What B decisions rest on besides their candidates: each field is [B], or a number."""

    workload: WorkloadColumns
    weights: Weights
    mean_memory: Floats  # of the nodes, in bytes
    timing: Timing


def relative_columns(
    nodes: NodeColumns, zones: ZoneColumns, cost: PlacementCost
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]:
    """Return the columns to divide by their mean, in the order of RELATIVE_FEATURES."""
    return (
        cost.energy_j,
        cost.cost,
        cost.carbon_g,
        cost.runtime_s,
        zones.carbon_g_per_kwh,
        zones.price_per_mwh,
        nodes.cpu_capacity,
        nodes.memory_capacity,
    )


def room_columns(
    nodes: NodeColumns, workload: WorkloadColumns, cost: PlacementCost, model: CostModel
) -> tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]:
    """Return the room left on each candidate, in the order of ROOM_FEATURES."""
    memory = workload.memory_bytes - nodes.memory_free
    memory /= np.maximum(nodes.memory_capacity, 1.0)
    memory += 1.0
    memory = np.minimum(np.maximum(memory, 0.0), 1.0)
    gpus_free = np.maximum(nodes.gpu_free - workload.gpus, 0.0)
    gpus_free /= np.maximum(nodes.gpu_capacity, 1.0)
    starts = curve_starts(nodes.curve_class)
    idle_w = taken(model.curve_watts, starts)
    full_w = taken(model.curve_watts, starts + (CURVE_POINTS - 1))
    return (
        nodes.cpu_before,
        cost.cpu_after,
        memory,
        gpus_free,
        nodes.is_empty,
        nodes.gpu_capacity * (1.0 / GPUS_PER_NODE),
        gpus_free * np.maximum(cost.cpu_after, memory),
        idle_w / np.maximum(full_w, 1e-9),
    )


def make_relative(values: Floats) -> Floats:
    """Divide each row of [B,K,N] in place by the mean of its magnitudes; return the means, [B,K].

    Magnitudes, because prices may be negative: a mean near zero would amplify noise, and a
    negative one would reverse the order. For positive values this is the plain mean. A row of
    zeros becomes ones: no candidate differs. A row with a NaN becomes NaN, and so does its mean.
    """
    batch, kinds, count = values.shape
    rows = values.reshape(batch * kinds, count)  # a view: one product for all decisions
    mean: Floats = np.dot(np.abs(rows), np.full(count, 1.0 / count))
    factor, offset = relative_scale(mean)
    rows *= factor[:, None]
    if offset.any():
        rows += offset[:, None]
    return mean.reshape(batch, kinds)


def relative_scale(mean: Floats) -> tuple[Floats, Floats]:
    """Return the factor and the offset that make values of that mean magnitude relative."""
    offset: Floats = np.float64(1.0) * (mean < LEAST_MAGNITUDE)  # zeros become ones
    factor: Floats = 1.0 / (mean + offset)
    return factor, offset


def leave_out_unknown(features: npt.NDArray[np.float32], is_known: npt.NDArray[np.bool_]) -> None:
    """Put 1 or relative energy where a candidate of the decision lacks a price or carbon.

    `features` is [B,22,N]; `is_known`, [B,8], says which relative features have all their data.
    """
    for row in range(is_known.shape[0]):
        if not is_known[row, RELATIVE_ZONE_CARBON]:
            features[row, CARBON] = 1.0
            features[row, ZONE_CARBON] = 1.0
        if not is_known[row, RELATIVE_ZONE_PRICE]:
            features[row, COST] = features[row, ENERGY]
            features[row, ZONE_PRICE] = 1.0


def work_columns(
    workload: WorkloadColumns,
    weights: Weights,
    has_carbon: npt.NDArray[np.bool_] | bool,
    mean_memory: Floats,
    count: int,
) -> tuple[Any, ...]:
    """Return what `count` candidates of a decision share of the work, by WORK_FEATURES.

    Workload, `has_carbon` and `mean_memory`, in bytes per node, are [B] or numbers.
    """
    return (
        weights.cost,
        weights.carbon * has_carbon,
        weights.performance,
        np.log1p(workload.runtime_s / SECONDS_PER_HOUR),
        np.log1p(workload.cpu_cores),
        workload.gpus / GPUS_PER_NODE,
        workload.memory_bytes / np.maximum(mean_memory, 1.0),
        np.log(count) / 10.0,
    )


def fill_context(
    work: tuple[Any, ...],
    timing: Timing,
    runtime_s: Any,
    context: npt.NDArray[np.float32],
) -> None:
    """Fill in the context of B decisions, [B,15], from its WORK_FEATURES, [B] or numbers each."""
    context[:, 0], context[:, 1], context[:, 2], context[:, 3] = work[:4]
    context[:, 4], context[:, 5], context[:, 6], context[:, 7] = work[4:]
    found = timing_columns(timing, runtime_s)
    context[:, 8], context[:, 9], context[:, 10] = found[:3]
    context[:, 11], context[:, 12], context[:, 13], context[:, 14] = found[3:]
