"""The arrays that a learned `how_fast` policy sees: one row of features per power cap of a node.

`kernel/seeing_power_caps.py` fills them in. Watts are divided by the mean of the power caps, as
inputs of `where` and `when` are by the mean of their candidates. Part of the same ENCODING_VERSION.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

POWER_CAP_FEATURES = (
    "power",  # watts above idle, relative to the mean power cap's
    "energy",  # of a second's work, with idle watts that end with it, relative
    "power_cap",  # 0..1, 1 without a cap
    "speed",  # of the slowest workload there, relative to no cap
    "keeps_deadlines",  # 1 if all running work is expected to end in time
    "dirtiness",  # carbon intensity now, relative to its forecast mean over the next day
    "dearness",  # price now, relative to its forecast mean over the next day, −4 to 4
    "spare_speed",  # speed beyond what the most urgent work there needs, −1 to 1
    "is_gpu",  # 1 for the cap of GPUs, 0 for that of CPUs
    "is_measured",  # 1 where a meter gives the node's watts
    "cluster_busy",  # share of all nodes' cores that is requested now, 0..1
    "cluster_waiting",  # cores requested by work that waits for a node, per core of all nodes, 0..4
    "planned_load",  # of the zone, over twice the time that the work there still runs, 0..4
)
(
    POWER,
    ENERGY_PER_WORK,
    CAP,
    CAP_SPEED,
    KEEPS_DEADLINES,
    DIRTINESS,
    DEARNESS,
    SPARE_SPEED,
    IS_GPU,
    IS_MEASURED_NODE,
    CLUSTER_BUSY,
    CLUSTER_WAITING,
    PLANNED_LOAD,
) = range(13)
MOST_LOAD = 4.0  # bounds waiting and planned work, per core


class PowerCapObservation(NamedTuple):
    """The input of a learned `how_fast` policy, float32; feature-major in memory."""

    power_caps: npt.NDArray[np.float32]  # [B,L,13]
    context: npt.NDArray[np.float32]  # [B,15] CONTEXT_FEATURES


class CappedDomain(NamedTuple):
    """What is known of B domains of nodes besides their power caps: each [B], or a number."""

    dearness: Any  # price now, relative to the coming day
    needed_speed: Any  # for the most urgent work; infinite where it is late, −1 without any
    is_gpu: Any  # 1 for GPUs, 0 for CPUs
    is_measured: Any  # 1 where a meter gives the node's watts, else 0
    cluster_busy: Any  # share of all nodes' cores that is requested now
    cluster_waiting: Any  # cores requested by work that waits for a node, per core of all nodes
    planned_load: Any  # cores of the zone that the plan keeps, per core; see POWER_CAP_FEATURES
