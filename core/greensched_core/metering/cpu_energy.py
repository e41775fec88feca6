"""Estimates a pod's energy above idle from CPU time and its node's power curve.

    joules = integral over time of (curve(u) - curve(0)) * (pod's CPU time / node's CPU time)

u is the node's CPU time per second and core. Kepler too divides a node's power by CPU time
(docs/developer/power-attribution-guide.md). The curve of `greensched_core.power.catalogue` replaces
Kepler's meter. Memory, GPUs and disks are not included.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence

from greensched_core.metering.energy_pieces import EnergyPoint
from greensched_core.power.curves import PowerCurve


def above_idle_j(
    curve: PowerCurve, cpu_cores: float, length_s: float, node_cpu_s: float, pod_cpu_s: float
) -> float:
    """Return the joules above idle that a pod took within `length_s` seconds.

    Within them the node used `node_cpu_s` seconds of CPU time, and the pod `pod_cpu_s`. The two
    counters are not read at the same moment, so a node counts as at least as busy as its pod.
    """
    busy_s = max(node_cpu_s, pod_cpu_s)
    if length_s <= 0 or cpu_cores <= 0 or busy_s <= 0:
        return 0.0
    watts = curve.at(busy_s / length_s / cpu_cores) - curve.idle_w
    return watts * length_s * pod_cpu_s / busy_s


def joules_counter(
    pod: Sequence[EnergyPoint],
    node: Sequence[EnergyPoint],
    begin_s: float,
    curve: PowerCurve,
    cpu_cores: float,
) -> list[EnergyPoint]:
    """Return a counter of joules above idle from the CPU seconds of a pod and its node.

    The pod's counter begins at 0 with its run, and at 0 again after a reset. A point without the
    node's value is left out; the next point includes its energy.
    """
    joules, since_s, known_s = 0.0, begin_s, 0.0
    counter: list[EnergyPoint] = []
    for at_s, cpu_s in pod:
        if not math.isfinite(cpu_s) or cpu_s < 0:
            continue
        taken_s = cpu_s - known_s if cpu_s >= known_s else cpu_s
        node_cpu_s = risen(node, since_s, at_s)
        if node_cpu_s is None:
            continue
        joules += above_idle_j(curve, cpu_cores, at_s - since_s, node_cpu_s, taken_s)
        counter.append((at_s, joules))
        since_s, known_s = at_s, cpu_s
    return counter


def risen(counter: Sequence[EnergyPoint], begin_s: float, until_s: float) -> float | None:
    """Return the rise of a counter between two times, interpolated between its points.

    None if a time lies outside the points, or the counter was reset.
    """
    begin, until = _value_at(counter, begin_s), _value_at(counter, until_s)
    if begin is None or until is None or until < begin:
        return None
    return until - begin


def _value_at(counter: Sequence[EnergyPoint], at_s: float) -> float | None:
    place = bisect_left(counter, (at_s, -math.inf))
    if place < len(counter) and counter[place][0] == at_s:
        value = counter[place][1]
        return value if math.isfinite(value) else None
    if place in (0, len(counter)):
        return None
    (before_s, before), (after_s, after) = counter[place - 1], counter[place]
    value = before + (after - before) * (at_s - before_s) / (after_s - before_s)
    return value if math.isfinite(value) else None
