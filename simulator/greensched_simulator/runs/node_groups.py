"""Groups of alike nodes: their capacity, and the watts per core and per GPU."""

from typing import NamedTuple

import numpy as np

from greensched_policies.costs.capping import (
    POWER_CAPS,
    cpu_power,
    cpu_speed,
    frequency_within,
    gpu_speed,
    gpu_watts,
)
from greensched_policies.costs.cost import CURVE_POINTS, Floats, Integers
from greensched_policies.costs.sleeping import SleepColumns
from greensched_simulator.arrays.jobs import JobArrays
from greensched_simulator.runs.replica_use import most_loaded
from greensched_simulator.runs.sleep_tables import sleep_columns
from greensched_simulator.world.world import World

_EPSILON = 1e-9  # rounding error of sums of floats, as a share of a capacity
# Frequencies at which the least joules are looked for where any may be set. Between two of them it
# is at most one part in a million less.
_FREQUENCIES = 513


class AlikeNodes(NamedTuple):
    """Nodes alike in all that matters here, as one large node."""

    zone: int
    capacity: tuple[float, float, float]  # cores, bytes and GPUs of all its nodes
    largest: tuple[float, float, float]  # of one node
    speed: float
    # By CPU frequency, [F]: the share of the highest, and the least and most watts per core
    # requested, at the meter.
    frequencies: Floats
    watts_per_core: tuple[Floats, Floats]
    steepest_watts_per_core: float  # the most that one core more can add, however full the node
    # Least and most per core of work whose length does not depend on the speed.
    staying_watts_per_core: tuple[float, float]
    gpu_caps: Floats  # that policies may set
    gpu_range_w: tuple[float, float]  # idle and peak of one GPU, without PUE
    pue: float
    slowest_frequency: float  # under the deepest caps that any policy may set
    saved_watts: float  # of one empty node at the meter while it sleeps; 0 if it cannot
    wake_joules: float  # at the meter, to wake it, above the joules of sleeping on

    def watts(self, jobs: JobArrays, job: int) -> tuple[float, float]:
        """Return the least and the most watts that a job adds here.

        If nodes are capped, they are the joules of work that takes a second at full speed. CPUs and
        GPUs take the least each at its own cap; the slower of them can only prolong the other.
        """
        workers = jobs.workers[job]
        cores = workers * jobs.cpu_cores[job]
        least_w, most_w = self.watts_per_core
        speed = cpu_speed(self.frequencies, jobs.frequency_sensitivity[job])
        least_gpu_w, most_gpu_w = (workers * each for each in self._gpu_watts(jobs, job))
        low = cores * (least_w / speed).min() + least_gpu_w
        if self.frequencies.size == 1:
            return float(low), float(cores * most_w[0] + most_gpu_w)
        high = cores * most_w.max() + most_gpu_w
        return float(low), float(high / self.slowest(jobs, np.array([job]))[0])

    def _gpu_watts(self, jobs: JobArrays, job: int) -> tuple[float, float]:
        """Return the least joules of a second's work of a worker's GPUs, and their most watts."""
        if jobs.gpus[job] == 0.0:
            return 0.0, 0.0
        gpu_w = jobs.gpus[job] * self.watts_per_gpu(jobs, job)
        slowed = gpu_speed(self.gpu_caps, *self.gpu_range_w, jobs.gpu_ratio[job])
        return float((gpu_w / slowed).min()), float(gpu_w.max())

    def watts_per_gpu(self, jobs: JobArrays, some: int | Integers) -> Floats:
        """Return the watts above idle of a GPU at work on some jobs, [C,J], or on one, [C].

        They are at the meter, at each of the caps.
        """
        gpu_ratio = jobs.gpu_ratio[some]
        caps = self.gpu_caps.reshape(-1, *(1,) * np.ndim(gpu_ratio))
        return gpu_watts(caps, *self.gpu_range_w, gpu_ratio) * self.pue

    def slowest(self, jobs: JobArrays, some: Integers) -> Floats:
        """Return the speeds of some jobs under the deepest caps, relative to no cap."""
        speed = cpu_speed(self.slowest_frequency, jobs.frequency_sensitivity[some])
        deepest = float(POWER_CAPS.min())
        slowed = gpu_speed(deepest, *self.gpu_range_w, jobs.gpu_ratio[some])
        found: Floats = np.where(jobs.gpus[some] > 0.0, np.minimum(speed, slowed), speed)
        return found

    def staying_watts(
        self, jobs: JobArrays, job: int, least_use: Floats, most_use: float
    ) -> tuple[Floats, float]:
        """Return the least watts that a replica adds here for each least use of CPU, and the most.

        They hold at any speed. Uses are relative to that of a job with the same request.
        """
        cores, gpus = jobs.cpu_cores[job], jobs.gpus[job]
        low_w, high_w = self.staying_watts_per_core
        gpu_w = self.watts_per_gpu(jobs, job)
        low: Floats = cores * low_w * least_use + gpus * gpu_w.min()
        return low, float(cores * high_w * most_use + gpus * gpu_w.max())


def groups_of(world: World, *, capped: bool = False) -> tuple[AlikeNodes, ...]:
    """Return the nodes grouped by zone, size, power, speed and sleep.

    With `capped` their least and most watts are over all power caps.
    """
    nodes = world.nodes
    keys = np.stack(
        [nodes.zone, nodes.curve_class, nodes.speed, nodes.pue, nodes.gpu_idle_w,
         nodes.gpu_peak_w, nodes.gpu_capacity, nodes.cpu_capacity, nodes.sleep_w, nodes.wake_s,
         nodes.wake_w],
        axis=1,
    )  # fmt: skip
    _, group_of = np.unique(keys, axis=0, return_inverse=True)
    members = [np.flatnonzero(group_of == each) for each in range(group_of.max() + 1)]
    power_caps, sleep = POWER_CAPS if capped else POWER_CAPS[:1], sleep_columns(world)
    return tuple(_group(world, each, power_caps, sleep) for each in members)


def _group(
    world: World, members: np.ndarray, power_caps: Floats, sleep: SleepColumns
) -> AlikeNodes:
    nodes, first = world.nodes, members[0]
    pue, cores = float(nodes.pue[first]), float(nodes.cpu_capacity[first])
    amounts = [nodes.cpu_capacity, nodes.memory_capacity, nodes.gpu_capacity]
    total = [float(each[members].sum()) for each in amounts]
    largest = [float(each[members].max()) for each in amounts]
    saved_w, _, wake_j = (float(each[0, first]) for each in sleep)
    start = int(nodes.curve_class[first]) * CURVE_POINTS
    curve, points = world.curve_watts[start : start + CURVE_POINTS], np.linspace(0, 1, CURVE_POINTS)
    fullest = most_loaded(world)
    reached = points < fullest
    loads = np.append(points[1:][reached[1:]], fullest)
    deepest = float(POWER_CAPS.min())
    slowest = float(frequency_within(deepest)) if world.caps_package_power else deepest
    frequencies = power_caps
    if world.caps_package_power and power_caps.size > 1:  # any frequency down to the slowest
        frequencies = np.linspace(1.0, slowest, _FREQUENCIES)
    above_w = np.outer(cpu_power(frequencies), np.interp(loads, points, curve) - curve[0]) + saved_w
    per_core = above_w / loads * world.utilisation_ratio / cores * pue
    steepest = float(np.diff(curve)[reached[:-1]].max()) * (CURVE_POINTS - 1)  # watts per full load
    return AlikeNodes(
        int(nodes.zone[first]),
        (total[0], total[1], total[2]),
        (largest[0], largest[1], largest[2]),
        float(nodes.speed[first]),
        frequencies,
        (per_core.min(axis=1), per_core.max(axis=1)),
        steepest * world.utilisation_ratio / cores * pue,
        (float(per_core.min()), float(per_core.max())),
        power_caps,
        (float(nodes.gpu_idle_w[first]), float(nodes.gpu_peak_w[first])),
        pue,
        slowest,
        saved_w * pue,
        wake_j * pue,
    )


def fits_group(jobs: JobArrays, job: int, group: AlikeNodes) -> bool:
    """Return whether an empty node of the group has room for a worker of a job."""
    asked = (jobs.cpu_cores[job], jobs.memory_bytes[job], jobs.gpus[job])
    return all(
        amount <= most * (1 + _EPSILON) for amount, most in zip(asked, group.largest, strict=True)
    )
