"""What a workload takes in each zone: watts, time, its share of a node.

For planning, ledger and budgets alike.
"""

import math
from collections.abc import Sequence

from greensched_operator.holding.holding import HoldTerms
from greensched_operator.objects.workloads import Work
from greensched_operator.planning.cluster_state import Zone
from greensched_policies.planning.held_start import node_share
from greensched_policies.planning.planning import NO_ZONE, Mean

_DIGITS = 12  # so that zones whose nodes are alike do not differ by rounding
LEAST_POWER_W = 1e-3  # of work that requests nothing, so that its zones and hours still compare


def work_watts(work: Work, terms: HoldTerms, zones: Sequence[Zone]) -> list[float]:
    """Return the mean watts that all pods of a workload add in each zone, with the sites' PUE.

    They are what requested cores and GPUs add on the mean node. A JobPowerProfile says the watts in
    the mean zone that can take them; in each they differ as those of cores and GPUs do.
    """
    found = [
        work.cpu_cores * zone.watts_per_core + work.gpus * zone.watts_per_gpu for zone in zones
    ]
    if terms.pod_power_w is not None:
        of_profile, relative = terms.pod_power_w * work.pods, _relative_watts(work, found, zones)
        found = [of_profile * zone.pue * each for zone, each in zip(zones, relative, strict=True)]
    return [max(each, LEAST_POWER_W) for each in found]


def _relative_watts(work: Work, watts: Sequence[float], zones: Sequence[Zone]) -> list[float]:
    """Return the watts in each zone, without its PUE, relative to the mean of zones by cores.

    Zones that cannot take the workload do not count; theirs are 1.
    """
    able = [speed > 0.0 for speed in speeds_for(pod_needs(work), zones)]
    bare_w = [each / zone.pue for each, zone in zip(watts, zones, strict=True)]
    cores = [zone.cpu_cores * is_able for zone, is_able in zip(zones, able, strict=True)]
    total = sum(each * many for each, many in zip(bare_w, cores, strict=True))
    if not total > 0.0:
        return [1.0] * len(zones)
    mean_w = total / sum(cores)
    return [
        round(each / mean_w, _DIGITS) if is_able else 1.0
        for each, is_able in zip(bare_w, able, strict=True)
    ]


def own_part(run: Mean, work: Work, terms: HoldTerms, zones: Sequence[Zone]) -> Mean:
    """Return a run of a gang with the power of one member; one that no zone can take stays."""
    if run.zone == NO_ZONE:
        return run
    return run._replace(power_w=work_watts(work, terms, zones)[run.zone])


def run_s(terms: HoldTerms, speed: float) -> float:
    """Return the expected runtime at a speed, in seconds; infinity at 0: no node can take it."""
    return terms.runtime_s / speed if speed else math.inf


def speeds_for(needs: tuple[float, float, float], zones: Sequence[Zone]) -> list[float]:
    """Return the speed of a pod's mean run in each zone, 0 where no node can take it.

    `needs` are its cores, bytes and GPUs. If no node of any zone can take it, a node may come that
    can: then every zone may, with GPUs only those that have some, if any has.
    """
    speeds = [zone.speed_for(*needs) for zone in zones]
    if any(speeds):
        return speeds
    if needs[2] and any(zone.gpus for zone in zones):
        return [zone.speed if zone.gpus else 0.0 for zone in zones]
    return [zone.speed for zone in zones]


def pod_needs(work: Work) -> tuple[float, float, float]:
    """Return the cores, bytes and GPUs that one pod of a workload requests."""
    pods = max(work.pods, 1)  # a Job's parallelism may be 0
    return work.cpu_cores / pods, work.memory_bytes / pods, work.gpus / pods


def largest_node(zones: Sequence[Zone]) -> tuple[float, float]:
    """Return the most cores and the most memory of a node in any zone; 0: unknown."""
    shapes = [shape for zone in zones for shape in zone.shapes]
    cores = max((shape.cpu_cores for shape in shapes), default=0.0)
    return cores, max((shape.memory_bytes for shape in shapes), default=0.0)


def share_of_node(work: Work, node: tuple[float, float]) -> float:
    """Return the share that one pod of a workload requests of a node of so many cores and bytes."""
    cpu_cores, memory_bytes, _ = pod_needs(work)
    return node_share(cpu_cores, memory_bytes, node)
