"""Power caps: power and speed of a node at each power cap, and the input of cap rules.

A node has two power domains with a power cap each: its CPUs and its GPUs. A power cap is a share:
of the highest CPU frequency, or of the CPU packages' watts above idle at full load, and of each
GPU's highest watt limit. All functions take numbers as well as arrays and stay within numba's
subset.
"""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.cost import Floats

CPU, GPU = 0, 1  # the power domains

# The power caps that a rule chooses from; the first means no cap.
POWER_CAPS = np.array([1.0, 0.9, 0.8, 0.7, 0.6, 0.5])

# Frequency sensitivity: the share of a run that scales with CPU frequency; the rest waits for
# memory or other nodes. The beta of Hsu and Feng, "A power-aware run-time system for
# high-performance computing", SC 2005. Measured on ARCHER2 (`greensched reproduce archer2`): VASP,
# OpenSBLI, CASTEP al3x3, ONETEP, CASTEP DNA, FHI-aims, GROMACS, HPL and LAMMPS.
FREQUENCY_SENSITIVITIES = np.array([0.03, 0.15, 0.22, 0.26, 0.3, 0.3, 0.6, 1.0, 1.0])
# The prior of decisions: nobody knows the sensitivity of a job that has not run yet. Energy goes by
# the mean, to which runtime is linear, and deadlines by the highest.
EXPECTED_SENSITIVITY = float(FREQUENCY_SENSITIVITIES.mean())
HIGHEST_SENSITIVITY = float(FREQUENCY_SENSITIVITIES.max())

# Share of a CPU's watts above idle that follow the cores' clock and voltage; the rest is memory and
# fabric, whose clocks stay. Mean of HPL, LAMMPS, GROMACS, ONETEP and CASTEP on ARCHER2, 0.57 to
# 0.98 (`greensched reproduce archer2`).
CLOCKED_POWER = 0.8
# Above this share of the highest frequency voltage follows frequency, so that clocked watts go with
# its cube (Elnozahy, Kistler and Rajamony, "Energy-efficient server clusters", PACS 2002). Below it
# the voltage stays at its least. On ARCHER2 energy was least near 0.74, not at the lowest frequency
# (service news, 12 December 2022).
VOLTAGE_FLOOR = 0.7

# Throughput by watts, both relative to no cap: means over V100, A40 and RTX 6000 of the medians of
# their power-hungry trainings (Zeus, NSDI 2023, artifact; `greensched reproduce zeus`).
GPU_DRAW = np.array([0.0, 0.448, 0.542, 0.642, 0.723, 0.813, 1.0])
GPU_SPEED = np.array([0.0, 0.571, 0.684, 0.839, 0.908, 0.954, 1.0])
LEAST_DRAW_W = 1e-9  # avoids 0 W / 0 W: a node without GPUs runs at full speed


class CapColumns(NamedTuple):
    """The power caps of one domain of each node, float64 [B,L]; the first means no cap.

    Watts and speed are the node's, with the other domain's cap as it is. Watts are at the meter.
    """

    power_cap: Floats  # 0..1
    speed: Floats  # expected of the slowest workload there, relative to no cap
    power_w: Floats  # above idle
    kept_awake_w: Floats  # idle watts that end with the work, because the node then sleeps
    # 1.0 if all running work is expected to end in time however sensitive it is, else 0.0
    keeps_deadlines: Floats
    dirtiness: Floats  # carbon intensity now, relative to its forecast mean over the next day


def cpu_speed(frequency: Floats | float, sensitivity: Floats | float) -> Floats:
    """Return the speed of work on CPUs at a share of their highest frequency, 1 at all of it.

    `sensitivity`, 0..1, is the share of a run that scales with frequency:
    T(f) = T(1) · (sensitivity · (1 / f − 1) + 1), Hsu and Feng, SC 2005.
    """
    slowdown: Floats = 1.0 + (np.divide(1.0, frequency) - 1.0) * sensitivity
    return 1.0 / slowdown


def cpu_power(frequency: Floats | float, clocked: Floats | float = CLOCKED_POWER) -> Floats:
    """Return the watts above idle of CPUs at a share of their highest frequency, 1 at all of it.

    `clocked`, 0..1, is the share of these watts that follows clock and voltage. See VOLTAGE_FLOOR.
    """
    voltage = np.maximum(frequency, VOLTAGE_FLOOR)
    saved: Floats = 1.0 - frequency * voltage * voltage
    return 1.0 - clocked * saved


def frequency_within(limit: Floats | float, clocked: Floats | float = CLOCKED_POWER) -> Floats:
    """Return the share of the highest frequency at which CPUs draw `limit`: `cpu_power`, inverted.

    So fast does work run under a limit of its package's watts. `limit` is relative to the work's
    own watts above idle; 1 and more has no effect. The result is 0 where the watts that follow no
    clock already exceed it.
    """
    of_clock = np.maximum(1.0 - (1.0 - limit) / np.maximum(clocked, LEAST_DRAW_W), 0.0)
    found = np.minimum(np.cbrt(of_clock), of_clock / (VOLTAGE_FLOOR * VOLTAGE_FLOOR))
    frequency: Floats = np.minimum(found, 1.0)
    return frequency


def gpu_watts(
    power_cap: Floats | float,
    idle_w: Floats | float,
    peak_w: Floats | float,
    gpu_ratio: Floats | float,
) -> Floats:
    """Return the watts above idle of one busy GPU at a power cap.

    A limit above the work's own draw has no effect, and no limit goes below idle.
    """
    wanted_w = idle_w + (peak_w - idle_w) * gpu_ratio
    return np.maximum(np.minimum(power_cap * peak_w, wanted_w), idle_w) - idle_w


def gpu_speed(
    power_cap: Floats | float,
    idle_w: Floats | float,
    peak_w: Floats | float,
    gpu_ratio: Floats | float,
) -> Floats:
    """Return the speed of work on a GPU at a power cap, 1 where the limit has no effect."""
    wanted_w = idle_w + (peak_w - idle_w) * gpu_ratio
    drawn_w = gpu_watts(power_cap, idle_w, peak_w, gpu_ratio) + idle_w
    share = (drawn_w + LEAST_DRAW_W) / (wanted_w + LEAST_DRAW_W)
    speed: Floats = np.interp(share, GPU_DRAW, GPU_SPEED)
    return speed
