"""What a learned `how_fast` policy sees of a node's power caps, one by one."""

from greensched_policies.compiling.compiled import borrowing, compiled, inlined
from greensched_policies.costs.cost import Floats
from greensched_policies.encoding.observation import DecisionToMake, relative_scale
from greensched_policies.encoding.power_cap_observation import (
    CAP,
    CAP_SPEED,
    CLUSTER_BUSY,
    CLUSTER_WAITING,
    DEARNESS,
    DIRTINESS,
    ENERGY_PER_WORK,
    IS_GPU,
    IS_MEASURED_NODE,
    KEEPS_DEADLINES,
    MOST_LOAD,
    PLANNED_LOAD,
    POWER,
    SPARE_SPEED,
    CappedDomain,
)
from greensched_policies.kernel.filling import fill_relative, fill_shared
from greensched_policies.kernel.seeing_nodes import Singles

_MOST_NEEDED = 2.0  # a speed beyond any: the work is late

_relative_scale = compiled(relative_scale, inlined)


@borrowing
def fill_power_caps(
    caps: Floats, domain: CappedDomain, asked: DecisionToMake, features: Singles, context: Singles
) -> None:
    """Fill in features [13,L] and context [15] of one decision; every value is finite.

    `caps`, [6,L], has the fields of CapColumns. The context's workload is all work on the node,
    with the longest expected runtime; its candidates are the power caps.
    """
    cap, speed, power_w, awake_w, keeps, dirtiness = caps
    needed = min(max(domain.needed_speed, 0.0), _MOST_NEEDED)
    fill_relative(power_w, features[POWER])
    _fill_energy(power_w, awake_w, speed, features[ENERGY_PER_WORK])
    for place in range(cap.size):
        features[CAP, place], features[CAP_SPEED, place] = cap[place], speed[place]
        features[KEEPS_DEADLINES, place], features[DIRTINESS, place] = (
            keeps[place],
            dirtiness[place],
        )
        features[SPARE_SPEED, place] = min(max(speed[place] - needed, -1.0), 1.0)
        features[DEARNESS, place] = domain.dearness
        features[IS_GPU, place] = domain.is_gpu
        features[IS_MEASURED_NODE, place] = domain.is_measured
        features[CLUSTER_BUSY, place] = domain.cluster_busy
        features[CLUSTER_WAITING, place] = min(domain.cluster_waiting, MOST_LOAD)
        features[PLANNED_LOAD, place] = min(domain.planned_load, MOST_LOAD)
    fill_shared(asked, cap.size, context)


@borrowing
def _fill_energy(power_w: Floats, awake_w: Floats, speed: Floats, seen: Singles) -> None:
    """Fill in the joules of a second's work, divided by their mean."""
    total = 0.0
    for place in range(speed.size):
        total += (power_w[place] + awake_w[place]) / speed[place]
    factor, offset = _relative_scale(total / speed.size)
    for place in range(speed.size):
        seen[place] = (power_w[place] + awake_w[place]) / speed[place] * factor + offset
