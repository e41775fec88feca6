"""Power caps: power and speed of a node at each power cap, and the input of cap rules.

A power cap is a share of full power control: of the highest CPU frequency, and of each GPU's
highest watt limit. All functions take numbers as well as arrays and stay within numba's subset.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats

# The power caps that a rule chooses from; the first means no cap.
POWER_CAPS = np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5])

# Share of a run that scales with CPU frequency; the rest waits for memory. The beta of Hsu and
# Feng, "A power-aware run-time system for high-performance computing", SC 2005; an assumption.
CPU_BOUND = 0.5
# Exponent of watts above idle: 1 if the voltage is constant, 3 if it follows the frequency
# (Elnozahy, Kistler and Rajamony, "Energy-efficient server clusters", PACS 2002). With 2, a full
# server that idles at a quarter of its peak takes a quarter less energy for the same work at 70 %.
# That is about the most reported for CPU package caps (arXiv 2506.16046). At 50 % it takes a third
# less, which is more than reported: treat the savings of caps as an upper bound.
FREQUENCY_EXPONENT = 2.0

# Throughput by watts, both relative to no cap: means over V100, A40 and RTX 6000 of the medians of
# their power-hungry trainings (Zeus, NSDI 2023, artifact; `greensched reproduce zeus`).
GPU_DRAW = np.array([0.0, 0.448, 0.542, 0.642, 0.723, 0.813, 1.0])
GPU_SPEED = np.array([0.0, 0.571, 0.684, 0.839, 0.908, 0.954, 1.0])
LEAST_W = 1e-9  # avoids 0 W / 0 W: a node without GPUs runs at full speed


class CapColumns(NamedTuple):
    """The power caps of each node, float64 [B,L]; the first means no cap.

    Watts are at the meter.
    """

    power_cap: Floats  # 0..1
    speed: Floats  # of the slowest workload there, relative to no cap
    power_w: Floats  # above idle
    kept_awake_w: Floats  # idle watts that end with the work, because the node then sleeps
    keeps_deadlines: Floats  # 1.0 if all running work is expected to end in time, else 0.0
    dirtiness: Floats  # carbon intensity now, relative to its forecast mean over the next day


def cpu_speed(power_cap: Floats | float) -> Floats:
    """Return the speed of work on CPUs at a power cap, 1 without a cap.

    T(f) = T(1) · (beta · (1 / f − 1) + 1), Hsu and Feng, SC 2005.
    """
    slowdown: Floats = np.divide(1.0, power_cap) * CPU_BOUND + (1.0 - CPU_BOUND)
    return 1.0 / slowdown


def cpu_power(power_cap: Floats | float) -> Floats:
    """Return the watts above idle of a node's CPUs at a power cap, 1 without a cap."""
    watts: Floats = power_cap**FREQUENCY_EXPONENT
    return watts


def gpu_watts(
    power_cap: Floats | float, idle_w: Floats | float, peak_w: Floats | float, gpu_ratio: float
) -> Floats:
    """Return the watts above idle of one busy GPU at a power cap.

    A limit above the work's own draw has no effect, and no limit goes below idle.
    """
    wanted_w = idle_w + (peak_w - idle_w) * gpu_ratio
    return np.maximum(np.minimum(power_cap * peak_w, wanted_w), idle_w) - idle_w


def gpu_speed(
    power_cap: Floats | float, idle_w: Floats | float, peak_w: Floats | float, gpu_ratio: float
) -> Floats:
    """Return the speed of work on a GPU at a power cap, 1 where the limit has no effect."""
    wanted_w = idle_w + (peak_w - idle_w) * gpu_ratio
    drawn_w = gpu_watts(power_cap, idle_w, peak_w, gpu_ratio) + idle_w
    share = (drawn_w + LEAST_W) / (wanted_w + LEAST_W)
    speed: Floats = np.interp(share, GPU_DRAW, GPU_SPEED)
    return speed
