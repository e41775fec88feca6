"""Rules that choose on which node a pod runs.

A rule sees nodes [B,N,22] and context [B,15], whose columns are named in `encoding.observation`.
It returns relative costs [B,N], lower is better.
"""

import numpy as np
import numpy.typing as npt

from greensched_policies.encoding.observation import (
    CARBON,
    COST,
    CPU_AFTER,
    CPU_BEFORE,
    ENERGY,
    GPU_FREE_AFTER,
    GPU_SIZE,
    GPUS,
    GPUS_PER_NODE,
    MEMORY_AFTER,
    MEMORY_SHARE,
    MEMORY_SIZE,
    SLOWDOWN,
    WEIGHT_CARBON,
    WEIGHT_COST,
    WEIGHT_PERFORMANCE,
    ZONE_CARBON,
)

# Relative to the candidates, not in grams: a fixed number of grams lets everything pass on a
# clean grid and nothing on a dirty one.
DIRTY = 1.0
LEAST_WEIGHT = 1e-6  # if all weights are zero, each cost is 0: no preference
TOPSIS_CRITERIA = ((COST, WEIGHT_COST), (CARBON, WEIGHT_CARBON), (SLOWDOWN, WEIGHT_PERFORMANCE))


def first_fit(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's place relative to the mean place, [B,N]; the first is cheapest.

    First fit of Garey, Graham and Ullman, "Worst-case analysis of memory allocation algorithms",
    STOC 1972: all candidates have room, so the first one is the first fit.

    Source: Garey, Graham and Ullman, STOC 1972.
    """
    batch, count = nodes.shape[0], nodes.shape[1]
    relative_cost = np.empty((batch, count), dtype=np.float32)
    relative_cost[:] = (np.arange(count) + 0.5) * (2.0 / count)
    return relative_cost


def fastest(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's relative expected runtime, [B,N]: the earliest end is best.

    Minimum completion time (MCT) of Maheswaran et al., "Dynamic matching and scheduling of a class
    of independent tasks onto heterogeneous computing systems", HCW 1999. Candidates have room
    now, so completion takes just the runtime.

    Source: Maheswaran et al. (MCT), HCW 1999.
    """
    return nodes[:, :, SLOWDOWN].copy()


def least_energy(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's relative energy, [B,N]: the joules that the workload adds.

    The least increase of power, as in the power-aware best fit decreasing of Beloglazov,
    Abawajy and Buyya, "Energy-aware resource allocation heuristics", FGCS 28(5), 2012; times
    the runtime on the candidate, so that a slow node does not look frugal.

    Source: Beloglazov et al., FGCS 2012.
    """
    return nodes[:, :, ENERGY].copy()


def least_cost(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's relative money, [B,N]; relative energy where a price is missing.

    The choice of sites by price follows Qureshi et al., "Cutting the Electric Bill for
    Internet-Scale Systems", SIGCOMM 2009.

    Source: Qureshi et al., SIGCOMM 2009.
    """
    return nodes[:, :, COST].copy()


def least_carbon(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return each candidate's relative carbon, [B,N]; all 1 where carbon is not known.

    Marginal energy times the zone's carbon intensity, as low-carbon Kubernetes schedulers do
    by region (James and Schien, "A Low Carbon Kubernetes Scheduler", ICT4S 2019), here also
    by the joules that the workload adds.

    Source: James and Schien, ICT4S 2019.
    """
    return nodes[:, :, CARBON].copy()


def bin_pack(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 1.5 minus the mean of CPU and memory use after placement, [B,N], 0.5 when full.

    kube-scheduler's NodeResourcesFit with strategy MostAllocated (CPU and memory, weight 1
    each), on expected utilisation instead of requested CPU. The energy-only baseline.

    Source: kube-scheduler, MostAllocated.
    """
    fullness = nodes[:, :, CPU_AFTER] + nodes[:, :, MEMORY_AFTER]
    return np.float32(1.5) - np.float32(0.5) * fullness


def spread(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 0.5 plus the mean of CPU and memory use after placement, [B,N], 1.5 when full.

    kube-scheduler's NodeResourcesFit with its default strategy LeastAllocated (CPU and
    memory, weight 1 each), on expected utilisation instead of requested CPU.

    Source: kube-scheduler, LeastAllocated.
    """
    fullness = nodes[:, :, CPU_AFTER] + nodes[:, :, MEMORY_AFTER]
    return np.float32(0.5) + np.float32(0.5) * fullness


def kubernetes_default(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 0.5 plus mean use after placement plus a quarter of the growth in imbalance, [B,N].

    The sum of kube-scheduler's default scores that differ between nodes with room, weight 1 each,
    divided by 100 and inverted. NodeResourcesFit: LeastAllocated, 1 − (cpu + memory) / 2.
    NodeResourcesBalancedAllocation since v1.36 (kubernetes#135573): 0.75 plus half of
    |cpu − memory| / 2 before minus the same after. Upstream takes requested CPU and rounds to
    hundredths; this rule takes expected utilisation without rounding. Neither scores GPUs.

    Source: kube-scheduler v1.36, LeastAllocated and BalancedAllocation.
    """
    share = context[:, MEMORY_SHARE].copy().reshape((-1, 1))
    asked = share / np.maximum(nodes[:, :, MEMORY_SIZE], np.float32(1e-6))
    cpu, memory = nodes[:, :, CPU_AFTER], nodes[:, :, MEMORY_AFTER]
    imbalance = np.abs(cpu - memory)
    imbalance -= np.abs(nodes[:, :, CPU_BEFORE] - np.maximum(memory - asked, np.float32(0.0)))
    relative_cost: npt.NDArray[np.float32] = np.float32(0.25) * imbalance
    relative_cost += np.float32(0.5) + np.float32(0.5) * (cpu + memory)
    return relative_cost


def carbon_threshold(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return relative energy, [B,N], raised above every clean one where the zone is dirty.

    A zone is dirty when its carbon intensity over the run is above the candidates' mean. The
    threshold policy of Souza et al., "Ecovisor", ASPLOS 2023, which pauses work above a carbon
    threshold, applied to places instead of times. Without carbon data no zone is dirty.

    Source: Souza et al. (Ecovisor), ASPLOS 2023.
    """
    energy = nodes[:, :, ENERGY]
    is_dirty = nodes[:, :, ZONE_CARBON] > np.float32(DIRTY * 1.0001)  # float32 of the mean
    relative_cost = energy.copy()
    for row in range(energy.shape[0]):
        relative_cost[row] += is_dirty[row] * energy[row].max()
    return relative_cost


def weighted_cost(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return (w_cost·cost + w_carbon·carbon + w_perf·slowdown) / (sum of weights), [B,N].

    The reward of training and reports, r = −(w_cost·cost + w_carbon·carbon + w_perf·penalty),
    for one placement and relative to its candidates: about 1 for an average candidate.

    Source: this project's reward.
    """
    relative_cost = np.empty(nodes.shape[:2], dtype=np.float32)
    for row in range(nodes.shape[0]):
        by_cost, by_carbon = context[row, WEIGHT_COST], context[row, WEIGHT_CARBON]
        by_performance = context[row, WEIGHT_PERFORMANCE]
        total = np.maximum(by_cost + by_carbon + by_performance, np.float32(LEAST_WEIGHT))
        relative_cost[row] = (
            nodes[row, :, COST] * (by_cost / total)
            + nodes[row, :, CARBON] * (by_carbon / total)
            + nodes[row, :, SLOWDOWN] * (by_performance / total)
        )
    return relative_cost


def keids(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return the mean of relative energy, relative carbon and 0.5 plus interference, [B,N].

    The three objectives of Kaur et al., "KEIDS: Kubernetes-based energy and interference driven
    scheduler for industrial IoT in edge-cloud ecosystem", IEEE IoT Journal 7(5), 2020, summed
    for one workload at a time instead of an integer programme. All weigh the same, whatever the
    context's weights. Interference is not measured here: it is the mean share of CPU and memory
    that other work holds, since containers contend for these. EcoKube (TDIS 2026) also sums, but
    carbon, runtime and queueing.

    Source: Kaur et al. (KEIDS), IEEE IoT Journal 2020.
    """
    share = context[:, MEMORY_SHARE].copy().reshape((-1, 1))
    asked = share / np.maximum(nodes[:, :, MEMORY_SIZE], np.float32(1e-6))
    held = np.maximum(nodes[:, :, MEMORY_AFTER] - asked, np.float32(0.0)) + nodes[:, :, CPU_BEFORE]
    total = nodes[:, :, ENERGY] + nodes[:, :, CARBON] + np.float32(0.5) * (np.float32(1.0) + held)
    relative_cost: npt.NDArray[np.float32] = total * np.float32(1.0 / 3.0)
    return relative_cost


def tetris(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return the negative alignment of request and free resources, [B,N], within −3 … 0.

    Grandl et al., "Multi-resource packing for cluster schedulers" (Tetris), SIGCOMM 2014: the dot
    product of demand and free capacity before, both over the node's capacity; here of CPU, memory
    and GPUs, without disks and network. Memory and GPUs are requests. CPU is expected use, as in
    the paper, and is understated where the node's load reaches its cores.

    Source: Grandl et al. (Tetris), SIGCOMM 2014.
    """
    bytes_share = context[:, MEMORY_SHARE].copy().reshape((-1, 1))
    memory = bytes_share / np.maximum(nodes[:, :, MEMORY_SIZE], np.float32(1e-6))
    gpus_share = context[:, GPUS].copy().reshape((-1, 1))
    gpus = gpus_share / np.maximum(nodes[:, :, GPU_SIZE], np.float32(1.0 / GPUS_PER_NODE))
    cpu_before = nodes[:, :, CPU_BEFORE]
    alignment = (nodes[:, :, CPU_AFTER] - cpu_before) * (np.float32(1.0) - cpu_before)
    alignment += memory * (np.float32(1.0) - nodes[:, :, MEMORY_AFTER] + memory)
    alignment += gpus * (nodes[:, :, GPU_FREE_AFTER] + gpus)
    relative_cost: npt.NDArray[np.float32] = -alignment
    return relative_cost


def topsis(
    nodes: npt.NDArray[np.float32], context: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Return 1.5 minus the closeness to the ideal candidate, [B,N], within 0.5 … 1.5.

    Technique for Order Preference by Similarity to Ideal Solution (Hwang and Yoon, "Multiple
    Attribute Decision Making", Springer 1981) over money, carbon and slowdown, all
    minimised, weighted by the context, each criterion scaled to unit length per decision. The
    baseline of energy-aware Kubernetes schedulers such as EcoKube (TDIS 2026). Candidates
    that do not differ in any weighted criterion all get 1.

    Source: Hwang and Yoon, 1981.
    """
    relative_cost = np.ones(nodes.shape[:2], dtype=np.float32)
    for row in range(nodes.shape[0]):
        to_ideal = np.zeros(nodes.shape[1], dtype=np.float32)  # squared distances
        to_worst = np.zeros(nodes.shape[1], dtype=np.float32)
        for feature, weight in TOPSIS_CRITERIA:
            values = nodes[row, :, feature]
            length = np.sqrt((values * values).sum())
            weighted = values * (context[row, weight] / np.maximum(length, np.float32(1e-12)))
            to_ideal += (weighted - weighted.min()) ** 2
            to_worst += (weighted.max() - weighted) ** 2
        apart = np.sqrt(to_ideal) + np.sqrt(to_worst)
        if apart.min() > 0.0:  # zero for one is zero for all: no candidate differs
            relative_cost[row] = np.float32(1.5) - np.sqrt(to_worst) / apart
    return relative_cost
